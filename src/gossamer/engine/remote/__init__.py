"""Remote connectors: `unix:` and `tcp:`, for ends that are in two processes or on two machines.

After Hunyadi 2007, figure 4.3: a local queue and a sender on one side, a receiver and a local queue on the other. Read
in the order in which an item travels::

    sending     takes items from the queue of the producers' side, numbers them, keeps them until they are acknowledged
    journal     where they are kept: in memory, or in a file that outlives the process
    frames      how they cross: length, kind, payload
    handshake   who may connect, and to what
    links       sockets, dialling and listening
    receiving   puts them into the queue of the consumers' side, each once, and acknowledges what was handled
    connector   all of it behind the one interface that components know

The package knows nothing of what the items are.
"""
