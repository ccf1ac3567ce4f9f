-- Whether a standing of delegate_comparison is one of _shortest_standing.
CREATE OR REPLACE MACRO _has_shortest_time(standing) AS standing IN ('fastest', 'shortest time', 'only one measured');
