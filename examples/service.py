"""A running service, used by a program: try a query, add it, read answers, remove it. Start `windloom serve` first."""

import httpx

api = httpx.Client(base_url="http://127.0.0.1:8470/api/v1", timeout=60)
text = "SELECT symbol, max(price) AS high FROM trades [RANGE 5 minutes SLIDE 1 minute] GROUP BY symbol"

found = api.post("/queries/dry-run", json={"text": text}).json()
print(found["place"], "·", found["summary"])
print(api.post("/queries", json={"name": "high_5m", "text": text}).json())
print([query["name"] for query in api.get("/queries").json()["queries"]])
print(api.get("/queries/avg_1m/answers", params={"limit": 1}).json())
print(api.post("/queries", json={"name": "wrong", "text": text.replace("price", "prise")}).json()["error"]["message"])
print(api.delete("/queries/high_5m").json()["query"], "is removed")
