"""Python that OpenZL calls: what interrupts it is kept, since OpenZL does not pass it on."""


def keeping(method):
    """Wrap a method of one argument so that an interrupt of it is not lost.

    Parameters
    ----------
    method : callable
        Of a class whose objects have a list `interrupts`.

    Returns
    -------
    callable
        The method; an exception that is no `Exception`, such as KeyboardInterrupt,
        is appended to `interrupts` before it is raised.

    Notes
    -----
    Compiled, because the interpreter raises what a signal handler asks for as soon
    as OpenZL calls a Python function: before the first line of that, where nothing
    written in Python can catch it.
    """

    def kept(self, argument):
        try:
            return method(self, argument)
        except Exception:
            raise
        except BaseException as interrupt:
            self.interrupts.append(interrupt)
            raise

    return kept
