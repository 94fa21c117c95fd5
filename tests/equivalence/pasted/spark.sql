-- Texts as people write them for Spark. A test runs each by Spark itself and by a loom: names, types and rows must be equal.

SELECT window, count(*) AS n FROM trades GROUP BY window(ts, '10 minutes');

SELECT window.start, window.end, count(1) FROM trades GROUP BY window(ts, '10 minutes')

select window(ts, '15 minutes') as w, symbol, avg(price) as p from trades group by window(ts, '15 minutes'), symbol

SELECT window(ts, '15 minutes') AS w, symbol, sum(volume) AS v
FROM trades
GROUP BY w, symbol
ORDER BY w, symbol;

SELECT symbol, window.start AS ws, max(price) AS high, min(price) AS low
FROM trades
WHERE volume > 2
GROUP BY symbol, window(ts, '30 minutes', '10 minutes')
ORDER BY symbol, ws

SELECT window(ts, '5 minutes').start AS s, count(*) AS c FROM trades GROUP BY window(ts, '5 minutes') ORDER BY s DESC

SELECT CAST(window.start AS DATE) AS d, sum(price) AS total FROM trades GROUP BY window(ts, '1 hour') ORDER BY total

SELECT date_format(window.end, 'HH:mm') AS until, symbol, count(*) AS n FROM trades GROUP BY window(ts, '20 minutes'), symbol ORDER BY until, n DESC, symbol

SELECT symbol, count(*) FROM trades GROUP BY symbol, window(ts, '10 minutes')

SELECT sum(volume) FROM trades GROUP BY window(ts, '10 minutes')

SELECT window, symbol AS s, round(avg(price), 2) AS p FROM trades GROUP BY window(ts, '10 minutes'), symbol HAVING count(*) > 1

SELECT window.start AS ws, symbol, sum(volume) AS total FROM trades GROUP BY window(ts, '10 minutes'), symbol HAVING total > 10 ORDER BY ws, total DESC

SELECT window.start, upper(venue) AS v, count(DISTINCT symbol) AS k FROM trades GROUP BY window(ts, '1 hour'), upper(venue)

SELECT window(ts, '10 minutes'), symbol, count(*) FROM trades GROUP BY 1, 2

SELECT symbol AS s, window(ts, '10 minutes', '5 minutes') AS win, count(*) AS cnt FROM trades GROUP BY 2, 1 ORDER BY 2, 1

SELECT `window`.`start` AS `window start`, `symbol` AS `Symbol`, count(*) AS `how many` FROM `trades` GROUP BY window(`ts`, '10 minutes'), `symbol`

/* average per quarter */ SELECT window.start -- the start
, avg(price) /* mean */ AS p FROM trades GROUP BY window(ts, '15 minutes');;

SELECT t.symbol, window(t.ts, '10 minutes') AS w, sum(t.volume) AS v FROM trades t GROUP BY t.symbol, window(t.ts, '10 minutes')

SELECT trades.symbol, max(trades.price) FROM trades GROUP BY trades.symbol, window(trades.ts, '1 hour')

SELECT unix_timestamp(window.start) AS s, unix_timestamp(window.end) - unix_timestamp(window.start) AS len, count(*) AS n FROM trades GROUP BY window(ts, '10 minutes')

SELECT window.start + INTERVAL 1 HOUR AS later, count(*) AS n FROM trades GROUP BY window(ts, '30 minutes')

SELECT hour(window.start) AS h, minute(window.start) AS m, count(*) AS n FROM trades GROUP BY window(ts, '30 minutes') ORDER BY h, m

SELECT window.end AS e, symbol, count(*) AS n FROM trades GROUP BY window(ts, '10 minutes'), symbol HAVING window.end > TIMESTAMP '2026-03-02 09:30:00' ORDER BY e, symbol

SELECT w.start, w.end, sum(p) AS p FROM (SELECT window(ts, '10 minutes') AS w, price AS p FROM trades) GROUP BY w ORDER BY w.start

SELECT w, sym, count(*) AS n FROM (SELECT window(ts, '10 minutes') AS w, lower(symbol) AS sym, volume FROM trades WHERE volume > 3) t GROUP BY w, sym

SELECT t.w.start AS s, avg(t.amount) AS a FROM (SELECT window(ts, '20 minutes') AS w, price * volume AS amount FROM trades) AS t WHERE t.amount > 20 GROUP BY t.w

SELECT sym, w.end, max(x) FROM (SELECT ts, symbol AS sym, price + fee AS x, window(ts, '30 minutes', '15 minutes') AS w FROM trades) WHERE sym IS NOT NULL GROUP BY sym, w

SELECT window.start AS ws, count(*) AS n FROM (SELECT * FROM trades WHERE venue = 'X') GROUP BY window(ts, '10 minutes') ORDER BY ws

SELECT session_window, symbol, count(*) AS n FROM trades GROUP BY session_window(ts, '5 minutes'), symbol

SELECT session_window.start AS s, session_window.end AS e, sum(volume) AS v FROM trades GROUP BY session_window(ts, '3 minutes') ORDER BY s

SELECT session_window(ts, '10 minutes') AS session, symbol, max(price) AS m FROM trades GROUP BY session, symbol ORDER BY session, symbol

SELECT window.start AS ws, symbol, last(price) AS p, first(price) AS f FROM trades GROUP BY window(ts, '1 minute'), symbol

SELECT symbol, stddev(price) AS s, variance(price) AS v FROM trades GROUP BY symbol, window(ts, '2 hours') ORDER BY symbol

SELECT window, sum(price * volume) / sum(volume) AS vwap FROM trades GROUP BY window(ts, '10 minutes') ORDER BY window

SELECT window, sum(price * volume) / sum(volume) FROM trades GROUP BY window(ts, '10 minutes')

SELECT window.start, sum(fee), avg(fee), max(fee) FROM trades GROUP BY window(ts, '10 minutes')

SELECT count(*) FILTER (WHERE flag) AS yes, count(*) FILTER (WHERE NOT flag) AS no, window.start AS at FROM trades GROUP BY window(ts, '1 hour') ORDER BY at

SELECT sum(CASE WHEN flag THEN volume ELSE 0 END) AS v, window AS w FROM trades GROUP BY window(ts, '10 minutes')

SELECT CASE WHEN price > 10 THEN 'dear' ELSE 'cheap' END AS kind, window.start AS s, count(*) AS n FROM trades GROUP BY CASE WHEN price > 10 THEN 'dear' ELSE 'cheap' END, window(ts, '30 minutes') ORDER BY s, kind

SELECT venue, symbol, window.start AS s, count(*) AS n FROM trades WHERE symbol IN ('A', 'B') AND price BETWEEN 9 AND 21 GROUP BY venue, symbol, window(ts, '1 hour') ORDER BY n DESC, venue, symbol, s

SELECT window(ts, '10 minutes', '10 minutes', '5 minutes') AS w, count(*) AS n FROM trades GROUP BY window(ts, '10 minutes', '10 minutes', '5 minutes') ORDER BY w

SELECT window(ts, '1 hour', '15 minutes').end AS e, min(price) AS m FROM trades GROUP BY window(ts, '1 hour', '15 minutes') ORDER BY e

SELECT window(ts, 'INTERVAL 10 MINUTES') AS w, count(*) AS n FROM trades GROUP BY window(ts, 'INTERVAL 10 MINUTES')

SELECT 'all' AS who, window.start AS s, count(*) AS n FROM trades GROUP BY window(ts, '1 hour')

SELECT 1 AS one, count(*) + 1 AS n, -count(*) AS m FROM trades GROUP BY window(ts, '1 hour')

SELECT count(*) + 1, max(price) - min(price), round(avg(price), 1) FROM trades GROUP BY window(ts, '1 hour')

SELECT window.start AS a, window.start AS b, symbol AS c, symbol AS d, count(*) AS n FROM trades GROUP BY window(ts, '1 hour'), symbol

SELECT max(price) FROM trades GROUP BY window(ts, '10 minutes') ORDER BY max(price) DESC

SELECT window.start AS s, max(price) AS p FROM trades GROUP BY window(ts, '10 minutes') ORDER BY count(*) DESC, window.start

SELECT window.start AS s, symbol, avg(price) AS p FROM trades GROUP BY window(ts, '10 minutes'), symbol ORDER BY s DESC NULLS LAST, p ASC NULLS LAST, symbol

SELECT symbol, window.start AS s, count(*) AS n FROM trades GROUP BY symbol, window(ts, '10 minutes') ORDER BY symbol NULLS LAST, s

SELECT symbol, window.start AS s, count(*) AS n FROM trades GROUP BY symbol, window(ts, '10 minutes') ORDER BY 1 DESC, 2

SELECT window.start AS s, count(DISTINCT symbol) AS d, approx_count_distinct(venue) AS v FROM trades GROUP BY window(ts, '1 hour')

SELECT concat(symbol, '@', venue) AS place, window.end AS e, sum(volume) AS v FROM trades GROUP BY concat(symbol, '@', venue), window(ts, '1 hour') HAVING sum(volume) IS NOT NULL

SELECT symbol || '/' || venue AS place, window.end AS e FROM trades GROUP BY symbol || '/' || venue, window(ts, '1 hour')

SELECT date_trunc('HOUR', window.start) AS h, count(*) AS n FROM trades GROUP BY window(ts, '20 minutes')

SELECT CAST(window.start AS LONG) AS s, CAST(count(*) AS INT) AS n FROM trades GROUP BY window(ts, '20 minutes')

SELECT symbol, window.start AS s, max_by(venue, price) AS v, min_by(venue, price) AS u FROM trades WHERE price IS NOT NULL GROUP BY symbol, window(ts, '30 minutes') HAVING count(price) = count(DISTINCT price)

SELECT symbol, median(price) AS m FROM trades GROUP BY symbol, window(ts, '1 hour')

SELECT coalesce(symbol, 'none') AS s, window.start AS w, count(*) AS n FROM trades GROUP BY coalesce(symbol, 'none'), window(ts, '30 minutes') ORDER BY w, s

SELECT flag, window.start AS w, bool_or(price > 10) AS dear, every(volume > 2) AS big FROM trades GROUP BY flag, window(ts, '30 minutes')

SELECT year(window.start) AS y, weekofyear(window.end) AS w, count(*) AS n FROM trades GROUP BY window(ts, '7 days')

SELECT window.start AS day, sum(volume) AS v FROM trades GROUP BY window(ts, '1 day') ORDER BY day

SELECT window.start, count(*), sum(volume), avg(price), min(symbol), max(venue), count(DISTINCT venue) FROM trades GROUP BY window(ts, '10 minutes')

SELECT symbol, window, count(*) AS n FROM trades GROUP BY symbol, window(ts, '10 minutes') HAVING n >= 2 AND symbol <> 'C' ORDER BY window DESC, symbol

SELECT named_struct('from', window.start, 'to', window.end) AS span, count(*) AS n FROM trades GROUP BY window(ts, '1 hour')

SELECT if(sum(volume) > 20, 'busy', 'calm') AS state, window.start AS s FROM trades GROUP BY window(ts, '10 minutes') ORDER BY s

SELECT symbol, w.start, count(*) AS n FROM (SELECT symbol, window(ts, '10 minutes') w FROM trades) GROUP BY symbol, w HAVING n > 1 ORDER BY symbol, n DESC, w

SELECT to_date(window.start) AS d, hour(window.start) AS h, sum(price) AS p FROM trades WHERE ts >= '2026-03-02 09:05:00' GROUP BY window(ts, '1 hour') ORDER BY d, h

SELECT round(sum(price) / count(price), 3) AS mean, window.end AS until FROM trades GROUP BY window(ts, '12 minutes', '4 minutes') ORDER BY until

SELECT window, venue, sum(volume) AS v FROM trades GROUP BY venue, window(ts, '1 hour') ORDER BY v DESC, window

SELECT count(*) AS n, window.end FROM trades WHERE volume IS NOT NULL GROUP BY window(ts, '1 minute') HAVING count(*) > 1 ORDER BY n DESC, end

SELECT struct(symbol, max(price)) AS best, struct(window.start, count(*) AS n) AS counted FROM trades GROUP BY window(ts, '1 hour'), symbol
