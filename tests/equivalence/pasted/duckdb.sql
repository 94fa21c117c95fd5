-- Texts as people write them for DuckDB, where time_bucket makes a tumbling window. Below each text are the rows it gives.

SELECT time_bucket(INTERVAL '30 minutes', ts) AS bucket, count(*) AS n FROM trades GROUP BY bucket;
-- 2026-03-02 09:00:00 | 15
-- 2026-03-02 09:30:00 | 3
-- 2026-03-02 10:00:00 | 2
-- 2026-03-02 10:30:00 | 1
-- 2026-03-02 11:00:00 | 1

SELECT time_bucket(INTERVAL '1 hour', ts) AS h, symbol, sum(volume) AS v FROM trades GROUP BY h, symbol ORDER BY h, symbol NULLS FIRST
-- 2026-03-02 09:00:00 | NULL | 2
-- 2026-03-02 09:00:00 | A | 50
-- 2026-03-02 09:00:00 | B | 27
-- 2026-03-02 09:00:00 | C | 53
-- 2026-03-02 10:00:00 | A | 7
-- 2026-03-02 10:00:00 | B | 13
-- 2026-03-02 10:00:00 | C | 3
-- 2026-03-02 11:00:00 | A | 2

SELECT symbol, max(price) AS high FROM trades WHERE venue = 'Y' GROUP BY symbol, time_bucket(INTERVAL '1 hour', ts)
-- A | 13.25
-- A | 14
-- B | 21
-- C | 7.75
-- C | 8.5

SELECT time_bucket(INTERVAL 30 MINUTE, ts) AS b, avg(price) AS p FROM trades GROUP BY 1 ORDER BY 1
-- 2026-03-02 09:00:00 | 11.5357143
-- 2026-03-02 09:30:00 | 13.0833333
-- 2026-03-02 10:00:00 | 10.5
-- 2026-03-02 10:30:00 | 22
-- 2026-03-02 11:00:00 | 14

SELECT time_bucket(INTERVAL '30 minutes', ts, INTERVAL '10 minutes') AS b, avg(price) AS p FROM trades GROUP BY ALL
-- 2026-03-02 08:40:00 | 12.1875
-- 2026-03-02 09:10:00 | 10.2857143
-- 2026-03-02 09:40:00 | 13.0625
-- 2026-03-02 10:40:00 | 18

SELECT time_bucket(INTERVAL '20 minutes', ts) AS b, count(*) AS n FROM trades GROUP BY b HAVING count(*) >= 3 ORDER BY b DESC
-- 2026-03-02 09:20:00 | 3
-- 2026-03-02 09:00:00 | 13

SELECT time_bucket(INTERVAL '2 hours', t.ts) AS b, t.symbol, min(t.price) AS low FROM trades t GROUP BY b, t.symbol
-- 2026-03-02 08:00:00 | A | 9.75
-- 2026-03-02 08:00:00 | B | 18
-- 2026-03-02 08:00:00 | C | 7.25
-- 2026-03-02 08:00:00 | NULL | 3
-- 2026-03-02 10:00:00 | A | 12.5
-- 2026-03-02 10:00:00 | B | 22
-- 2026-03-02 10:00:00 | C | 8.5

SELECT time_bucket(INTERVAL '30 minutes', ts) AS b, count(*) FILTER (WHERE flag) AS yes FROM trades GROUP BY b
-- 2026-03-02 09:00:00 | 8
-- 2026-03-02 09:30:00 | 2
-- 2026-03-02 10:00:00 | 1
-- 2026-03-02 10:30:00 | 0
-- 2026-03-02 11:00:00 | 1

SELECT "symbol" AS "the symbol", time_bucket(INTERVAL '1 hour', "ts") AS "b" FROM "trades" WHERE "price" >= 13 GROUP BY "symbol", "b"
-- A | 2026-03-02 09:00:00
-- A | 2026-03-02 11:00:00
-- B | 2026-03-02 09:00:00
-- B | 2026-03-02 10:00:00

SELECT time_bucket(INTERVAL '7 days', ts, INTERVAL '0 days') AS week, sum(volume) AS v, sum(fee) AS fees FROM trades GROUP BY week
-- 2026-03-02 00:00:00 | 157 | 4.84

SELECT time_bucket(INTERVAL '1 day', ts) AS day, arg_max(symbol, price) AS best, arg_min(symbol, price) AS worst FROM trades GROUP BY day
-- 2026-03-02 00:00:00 | B | C

SELECT time_bucket(INTERVAL '1 hour', ts) AS b, sum(price * volume) / sum(volume) AS vwap FROM trades WHERE price IS NOT NULL AND volume IS NOT NULL GROUP BY b
-- 2026-03-02 09:00:00 | 11
-- 2026-03-02 10:00:00 | 17.3478261
-- 2026-03-02 11:00:00 | 14

SELECT hour(time_bucket(INTERVAL '1 hour', ts)) AS h, count(*) AS n FROM trades GROUP BY time_bucket(INTERVAL '1 hour', ts) ORDER BY h
-- 9 | 18
-- 10 | 3
-- 11 | 1

SELECT b, count(*) AS n, max(amount) AS top FROM (SELECT time_bucket(INTERVAL '30 minutes', ts) AS b, price * volume AS amount FROM trades WHERE symbol = 'A') GROUP BY b ORDER BY b
-- 2026-03-02 09:00:00 | 7 | 180
-- 2026-03-02 09:30:00 | 1 | 53
-- 2026-03-02 10:00:00 | 1 | 87.5
-- 2026-03-02 11:00:00 | 1 | 28

SELECT time_bucket(INTERVAL '1 hour', ts) AS b, median(price) AS m, stddev_samp(price) AS s FROM trades GROUP BY b
-- 2026-03-02 09:00:00 | 10.5 | 5.12311658
-- 2026-03-02 10:00:00 | 12.5 | 6.93421469
-- 2026-03-02 11:00:00 | 14 | NULL

SELECT count(DISTINCT symbol) AS kinds, time_bucket(INTERVAL '45 minutes', ts) AS b FROM trades GROUP BY b ORDER BY kinds, b
-- 2 | 2026-03-02 09:45:00
-- 2 | 2026-03-02 10:30:00
-- 3 | 2026-03-02 09:00:00
