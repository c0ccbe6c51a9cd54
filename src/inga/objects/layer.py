"""Objects as the topmost layer of a stack: over bare datagrams, over `reliable`, over ReMIOP.

    Objects(host, reliable=False)   own numbers, copies and repair; what it sends are packets of its own kind
    Objects(host, reliable=True)    requests and responses go down as data, which the layers below repair;
                                    heartbeats and announcements are packets of its own kind, which may be lost

`group.call` and proxies of a driver use `stack.layer("object").host`, then let the stack get ready.
"""
