-- The name of a case without its delegate, which is that of XNNPACK with the same versions and options. The rule of
-- tasks/bundle/runtime.py.
CREATE OR REPLACE MACRO _without_delegate(model) AS
    regexp_replace(
        regexp_replace(
            model, '(@(?:[^@,]*,)*)delegate=[A-Za-z0-9][A-Za-z0-9_.+:-]*(?:,([^@]*))?$', '\1\2'
        ),
        '[@,]$',
        ''
    );
