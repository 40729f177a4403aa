"""Keeps a table of a service equal to a table of another system: ``kindred follow``.

The other system is the truth. A follower copies its rows, then applies every change, in order. Its position is stored in the same
batch as the rows, so that nothing is lost and nothing is done twice, whatever stops.

::

    PostgreSQL ─▶ snapshot, then transactions (postgres/) ──┐
    topic ─▶ messages (_kafka.py) ─┐                        │
    files ─▶ lines (_files.py) ────┴▶ records (_log.py) ────┤
                                      as JSON (_records.py) │ rows by key; several changes of one row become one (_batch.py)
                                                            ▼
                                         one batch with the source's position (_target.py) ─▶ POST /rows of the service
                                             │ how far, how late (_progress.py) ─▶ POST /sources, standard error
"""
