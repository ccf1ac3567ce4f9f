-- What the next night of a series on a device needs of the nights before it (tasks/judge/verdicts/state.py), for each
-- figure: after its newest night and after the night before that, which a further bundle of the newest night needs. A
-- series whose states are older than its nights to judge is judged from its first night.
CREATE TABLE series_state (
    series_id VARCHAR NOT NULL,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
    device VARCHAR NOT NULL,
    -- The figure, see series_verdict.
    metric VARCHAR NOT NULL,
    -- The night after which it is the state.
    night DATE NOT NULL,
    -- SHA-256 of the rules of the verdicts; with other rules, every series is judged from its first night.
    rule_sha256 VARCHAR NOT NULL,
    -- Whether the times of that night are of all runs of its sessions, not of the middle half.
    is_of_all_runs BOOLEAN NOT NULL,
    -- Whether a night began a baseline.
    has_baseline BOOLEAN NOT NULL,
    -- Nights that the level needs before nights alone confirm a change.
    min_level INTEGER NOT NULL,
    -- What ran in the newest night, as a hash; empty if unknown.
    newest_content VARCHAR NOT NULL,
    -- The last 60 nights that can be compared, ISO dates.
    history_nights VARCHAR[] NOT NULL,
    -- Their positions: logarithms of their figures, within states as if all sessions were in the fast one.
    history_positions DOUBLE[] NOT NULL,
    -- The last 21 nights of the level that nights are compared with, ISO dates.
    level_nights VARCHAR[] NOT NULL,
    -- Their positions.
    level_positions DOUBLE[] NOT NULL,
    -- What ran in each of them.
    level_contents VARCHAR[] NOT NULL,
    -- How far the nights of the level before it were from their median.
    former_deviations DOUBLE[] NOT NULL,
    -- How far the last 60 nights without a change of the model moved from their baselines.
    moves DOUBLE[] NOT NULL,
    -- The step that the last nights are in, and the one beyond it: JSON.
    steps JSON NOT NULL,
    -- Of the last 60 nights, how far the two groups of sessions at their widest gap are apart; NULL of few sessions.
    cluster_offsets DOUBLE[] NOT NULL,
    -- Standard deviations inside these groups.
    cluster_scatters DOUBLE[] NOT NULL,
    -- Whether these gaps are wide.
    are_clusters_clear BOOLEAN[] NOT NULL,
    -- How far the slow state of the sessions is from the fast one; NULL if the device shows one state.
    states_offset DOUBLE,
    -- Part of the sessions in the slow state.
    states_slow_share DOUBLE
);
