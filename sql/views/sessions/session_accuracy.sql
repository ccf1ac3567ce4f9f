-- Reads: accuracy, _session
-- Every output of every session that succeeded, compared with the same program on the machine that exported it, with
-- eager PyTorch in the same precision and, unless that is fp32, in fp32. A session without rows was not compared. An
-- entry with samples adds a row with the figures of the worst sample, executed on the machine that exported it.
CREATE OR REPLACE VIEW session_accuracy AS
SELECT
    COLUMNS(_cell_name()),
    session_id,
    output,
    -- host: the same program on the machine that exported it; eager: eager PyTorch in the same precision, for
    -- quantizing recipes the quantized model; fp32: eager PyTorch in fp32; samples: all samples, see below.
    reference,
    -- Whether the output is beyond the limit: its SNR is below min_snr_db, it is NaN or infinite where fp32 is finite,
    -- or finite where no reference is, its top1_agreement is below min_top1, or it is off by more than 0.001 where the
    -- reference is 0 everywhere; of tokens written one after another, whether any differs, and its margin is more than
    -- the limit of the recipe allows or not known; those of fp32 are not judged, nor those of eager PyTorch for
    -- recipes that quantize activations at run time. NULL if it was not judged.
    is_inaccurate,
    -- Signal-to-noise ratio in dB: 10 log10(sum of squares of the reference / sum of squares of the difference). NULL
    -- if both are equal or the reference is 0 everywhere.
    snr_db,
    -- The limit of the recipe, or of the entry in the sweep file, that applied when it was measured.
    min_snr_db,
    max_abs_error,
    max_rel_error,
    nonfinite_mismatches,
    -- Cosine of the angle between output and reference, -1 to 1; NULL if one is 0 everywhere.
    cosine,
    -- Share of rows (over the last dimension) whose largest element is at the same place, 0 to 1, of floating-point
    -- outputs with 1 to 3 dimensions: meaningful where the last one is classes or tokens. Of integer outputs, the share
    -- of equal elements. Without min_top1 it is shown and decides nothing, except that integers of which 90 % are
    -- equal are accurate.
    top1_agreement,
    min_top1,
    -- Number, from 0, of the first written token that differs from the reference; NULL if none does, and of outputs
    -- that are not written tokens.
    first_difference,
    -- How nearly the first token that differs would have been that of the reference: the distance of their scores in
    -- eager PyTorch over the root mean square of all scores there. Up to twice 10^(-limit/20), with the recipe's limit
    -- in dB, either token is right. NULL if the token is not one of the likeliest four, against fp32, and for recipes
    -- that change the program.
    margin,
    -- Why it is inaccurate, as the export found; NULL if unknown.
    cause,
    -- Number of samples; this and what follows is NULL for other references.
    samples,
    -- Samples with an output beyond a limit.
    below AS samples_below,
    -- File of the worst sample, whose snr_db and errors this row has. Its top1_agreement is the mean of all samples.
    worst AS worst_sample,
    median_snr_db,
    -- Mean of the user's score over the samples; NULL without one.
    score,
    -- The same for eager PyTorch before the conversion.
    reference_score,
    -- The least score that the entry in the sweep file states; NULL if it states none.
    min_score,
    -- Samples that calibrated the recipe, too.
    calibrating AS calibrating_samples,
    -- Machine that executed the samples: host name, system and processor.
    machine AS samples_machine,
    -- Hash of the names and hashes of all samples.
    sha256 AS samples_sha256,
    runner_source,
    COLUMNS(_cell_content())
FROM accuracy
JOIN _session USING (session_key)
WHERE status = 'succeeded';
