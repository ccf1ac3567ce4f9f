"""What a step says when it cannot go on: one sentence each, shown to people as it is."""


class FarmError(Exception):
    """A step could not do its work; the text is one sentence that names the cause and the way on."""


class InputError(FarmError):
    """Something that a person wrote or passed is wrong; the text names the file, what was wrong, and what is right."""
