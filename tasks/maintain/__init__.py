THIN_AFTER, PACK_AFTER, UNUSED_AFTER = 180, 30, 30
"""Days after which a prune thins the nights, packs the bundles, and removes what no bundle uses, by default."""
