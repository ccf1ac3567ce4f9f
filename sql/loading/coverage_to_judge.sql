-- The part on SME of either version of the cells to judge that could use SME. A cell has one coverage. It is left out
-- where neither names nor samples show the part on SME.
SELECT cell, sme_share
FROM sme2_coverage
WHERE cell IN (SELECT cell FROM night_to_judge WHERE variant != 'sme2_off') AND sme_share IS NOT NULL;
