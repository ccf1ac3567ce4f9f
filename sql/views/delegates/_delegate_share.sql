-- Reads: model, model_operator
-- What each backend took of an exported model, and what stayed portable: operators, without those on shapes and
-- numbers, and multiply-accumulates. Of a bundle that does not state it, the operators that XNNPACK took are known.
CREATE OR REPLACE VIEW _delegate_share AS
SELECT
    model_id,
    CASE
        WHEN delegates IS NOT NULL THEN delegates
        WHEN counted.delegated > 0 AND _delegate(name) = 'xnnpack' AND precision <> 'as_is'
            THEN [{ backend: 'XnnpackBackend', operators: counted.delegated, macs: NULL::BIGINT }]
    END AS taken,
    CASE
        WHEN delegates IS NULL THEN counted.delegated
        ELSE coalesce(list_sum(list_transform(delegates, LAMBDA each: each.operators)), 0)
    END::BIGINT AS delegated_operators,
    coalesce(model.portable_operators, counted.portable) AS portable_operators,
    CASE
        WHEN delegates IS NOT NULL THEN coalesce(list_sum(list_transform(delegates, LAMBDA each: each.macs)), 0)
    END::BIGINT AS delegated_macs,
    portable_macs
FROM model
LEFT JOIN
    LATERAL (
        SELECT
            coalesce(sum(count) FILTER (placement = 'delegated'), 0)::BIGINT AS delegated,
            coalesce(sum(count) FILTER (placement = 'portable' AND NOT _is_scalar_operator(operator)), 0)::BIGINT
                AS portable
        FROM model_operator
        WHERE model_operator.model_id = model.model_id
        HAVING count(*) > 0
    ) AS counted
    ON TRUE;
