-- Texts as people write them for RisingWave and Materialize. Below each text are the rows it gives.

SELECT window_start, window_end, count(*) AS n FROM tumble(trades, ts, INTERVAL '30 MINUTES') GROUP BY window_start, window_end;
-- 2026-03-02 09:00:00 | 2026-03-02 09:30:00 | 15
-- 2026-03-02 09:30:00 | 2026-03-02 10:00:00 | 3
-- 2026-03-02 10:00:00 | 2026-03-02 10:30:00 | 2
-- 2026-03-02 10:30:00 | 2026-03-02 11:00:00 | 1
-- 2026-03-02 11:00:00 | 2026-03-02 11:30:00 | 1

SELECT window_start, symbol, sum(volume) AS v FROM tumble(trades, ts, INTERVAL '1 hour') GROUP BY window_start, symbol
-- 2026-03-02 09:00:00 | A | 50
-- 2026-03-02 09:00:00 | B | 27
-- 2026-03-02 09:00:00 | C | 53
-- 2026-03-02 09:00:00 | NULL | 2
-- 2026-03-02 10:00:00 | A | 7
-- 2026-03-02 10:00:00 | B | 13
-- 2026-03-02 10:00:00 | C | 3
-- 2026-03-02 11:00:00 | A | 2

SELECT symbol, max(price) AS high FROM TUMBLE (trades, ts, INTERVAL '1' HOUR) WHERE venue = 'Y' GROUP BY symbol, window_end
-- A | 13.25
-- A | 14
-- B | 21
-- C | 7.75
-- C | 8.5

SELECT window_start, avg(price) AS p FROM tumble(trades, ts, INTERVAL '30 minutes', INTERVAL '10 minutes') GROUP BY window_start
-- 2026-03-02 08:40:00 | 12.1875
-- 2026-03-02 09:10:00 | 10.2857143
-- 2026-03-02 09:40:00 | 13.0625
-- 2026-03-02 10:40:00 | 18

SELECT window_start, count(*) AS n FROM tumble(trades, ts, INTERVAL '20 minutes') GROUP BY window_start HAVING count(*) >= 3 ORDER BY window_start DESC
-- 2026-03-02 09:20:00 | 3
-- 2026-03-02 09:00:00 | 13

SELECT window_start, sum(volume) AS v FROM tumble(trades, ts, INTERVAL '1 hour') GROUP BY window_start EMIT ON WINDOW CLOSE
-- 2026-03-02 09:00:00 | 132
-- 2026-03-02 10:00:00 | 23
-- 2026-03-02 11:00:00 | 2

SELECT t.symbol, t.window_end, min(t.price) AS low FROM tumble(trades, ts, INTERVAL '2 hours') AS t GROUP BY t.symbol, t.window_end
-- A | 2026-03-02 10:00:00 | 9.75
-- A | 2026-03-02 12:00:00 | 12.5
-- B | 2026-03-02 10:00:00 | 18
-- B | 2026-03-02 12:00:00 | 22
-- C | 2026-03-02 10:00:00 | 7.25
-- C | 2026-03-02 12:00:00 | 8.5
-- NULL | 2026-03-02 10:00:00 | 3

SELECT window_start, count(*) FILTER (WHERE flag) AS yes FROM tumble(trades, ts, INTERVAL '30 minutes') GROUP BY window_start, window_end
-- 2026-03-02 09:00:00 | 8
-- 2026-03-02 09:30:00 | 2
-- 2026-03-02 10:00:00 | 1
-- 2026-03-02 10:30:00 | 0
-- 2026-03-02 11:00:00 | 1

SELECT "window_start", "symbol" AS "Symbol" FROM tumble("trades", "ts", INTERVAL '1 hour') WHERE "price" >= 13 GROUP BY "window_start", "symbol"
-- 2026-03-02 09:00:00 | A
-- 2026-03-02 09:00:00 | B
-- 2026-03-02 10:00:00 | B
-- 2026-03-02 11:00:00 | A

SELECT window_start, max(price)::int AS p, count(*)::bigint AS n FROM tumble(trades, ts, INTERVAL '1 hour') GROUP BY window_start
-- 2026-03-02 09:00:00 | 21 | 18
-- 2026-03-02 10:00:00 | 22 | 3
-- 2026-03-02 11:00:00 | 14 | 1

SELECT window_start, window_end, count(*) AS n FROM hop(trades, ts, INTERVAL '30 minutes', INTERVAL '1 hour') GROUP BY window_start, window_end
-- 2026-03-02 08:30:00 | 2026-03-02 09:30:00 | 15
-- 2026-03-02 09:00:00 | 2026-03-02 10:00:00 | 18
-- 2026-03-02 09:30:00 | 2026-03-02 10:30:00 | 5
-- 2026-03-02 10:00:00 | 2026-03-02 11:00:00 | 3
-- 2026-03-02 10:30:00 | 2026-03-02 11:30:00 | 2
-- 2026-03-02 11:00:00 | 2026-03-02 12:00:00 | 1

SELECT window_end, symbol, sum(volume) AS v FROM hop(trades, ts, INTERVAL '1 hour', INTERVAL '2 hours') GROUP BY window_end, symbol HAVING sum(volume) > 20
-- 2026-03-02 10:00:00 | A | 50
-- 2026-03-02 10:00:00 | B | 27
-- 2026-03-02 10:00:00 | C | 53
-- 2026-03-02 11:00:00 | A | 57
-- 2026-03-02 11:00:00 | B | 40
-- 2026-03-02 11:00:00 | C | 56

SELECT window_start, max(price) - min(price) AS spread FROM hop(trades, ts, INTERVAL '1 hour', INTERVAL '2 hours', INTERVAL '30 minutes') GROUP BY window_start
-- 2026-03-02 07:30:00 | 18
-- 2026-03-02 08:30:00 | 18
-- 2026-03-02 09:30:00 | 14
-- 2026-03-02 10:30:00 | 8

SELECT symbol, count(*) AS n, window_start FROM HOP(trades, ts, INTERVAL '1 HOUR', INTERVAL '3 HOURS') h WHERE h.symbol = 'C' GROUP BY symbol, h.window_start
-- C | 1 | 2026-03-02 10:00:00
-- C | 4 | 2026-03-02 07:00:00
-- C | 5 | 2026-03-02 08:00:00
-- C | 5 | 2026-03-02 09:00:00

SELECT count(DISTINCT venue) AS v, window_start FROM hop(trades, ts, INTERVAL '1' DAY, INTERVAL '2' DAY) GROUP BY 2
-- 2 | 2026-03-01 00:00:00
-- 2 | 2026-03-02 00:00:00

SELECT window_start, coalesce(symbol, 'none') AS s, count(*) AS n FROM tumble(trades, ts, INTERVAL '1 day') GROUP BY window_start, coalesce(symbol, 'none') ORDER BY n DESC, s
-- 2026-03-02 00:00:00 | A | 10
-- 2026-03-02 00:00:00 | B | 6
-- 2026-03-02 00:00:00 | C | 5
-- 2026-03-02 00:00:00 | none | 1
