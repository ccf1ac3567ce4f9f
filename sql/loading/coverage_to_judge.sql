-- The part on SME of either version of the cells in $cells. A cell has one coverage. It is left out where neither names
-- nor samples show the part on SME.
SELECT cell, sme_share
FROM sme2_coverage
WHERE cell IN (SELECT unnest($cells)) AND sme_share IS NOT NULL;
