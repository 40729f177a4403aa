"""PostgreSQL as the source: a snapshot, then logical decoding by its own plug-in, ``pgoutput``.

::

    _setup.py     the table, its key and identity, the publication, the slot; what is missing is told with the SQL that makes it
    _snapshot.py  COPY of the rows at the slot's beginning
    _stream.py    every committed transaction behind it, in commit order
    _protocol.py  messages of pgoutput (PostgreSQL's documentation, "Logical Replication Message Formats")
    _values.py    values in their binary forms
"""
