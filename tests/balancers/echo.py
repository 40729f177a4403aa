"""A replica that answers every request with its head, as JSON. Speaks HTTP/2 only, as the balancers should. `full=HOST` in the address
makes that replica refuse the request as a full queue does; `full=all`, each."""

import asyncio
import json

import h2.config
import h2.connection
import h2.events


async def serve(host, port):
    return await asyncio.start_server(lambda reader, writer: converse(host, reader, writer), host, port)


def answer(host, head):
    """Its head, without the type of its body, and the body."""
    target = dict(head)[":path"]
    if target.endswith(("full=all", f"full={host}")):
        return [(":status", "429"), ("retry-after", "7")], b'{"code": "queue_full"}'
    return [(":status", "200")], json.dumps(head).encode()


async def converse(host, reader, writer):
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
    connection.initiate_connection()
    heads = {}
    try:
        while True:
            writer.write(connection.data_to_send())
            await writer.drain()
            data = await reader.read(65536)
            if not data:
                return
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    heads[event.stream_id] = list(event.headers)
                elif isinstance(event, h2.events.DataReceived):
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    head, body = answer(host, heads.pop(event.stream_id))
                    head += [("content-type", "application/json"), ("content-length", str(len(body)))]
                    connection.send_headers(event.stream_id, head)
                    connection.send_data(event.stream_id, body, end_stream=True)
    except (OSError, h2.exceptions.ProtocolError):
        pass
    finally:
        writer.close()
