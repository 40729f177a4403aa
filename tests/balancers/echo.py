"""A replica that answers every request with its head, as JSON. Speaks HTTP/2 only, as the balancers should. `full=HOST` in the address
makes that replica refuse the request as a full queue does; `full=all`, each. `take=MILLISECONDS` before it makes an answer take that long, and no
refusal."""

import asyncio
import json
import re

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


async def reply(connection, writer, stream, host, head):
    took = re.search(r"take=(\d+)", dict(head)[":path"])
    head, body = answer(host, head)
    if took and head[0] == (":status", "200"):
        await asyncio.sleep(int(took[1]) / 1000)
    head += [("content-type", "application/json"), ("content-length", str(len(body)))]
    try:
        connection.send_headers(stream, head)
        connection.send_data(stream, body, end_stream=True)
        writer.write(connection.data_to_send())
        await writer.drain()
    except (OSError, h2.exceptions.ProtocolError):
        pass


async def converse(host, reader, writer):
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
    connection.initiate_connection()
    heads, replies = {}, set()
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
                    one = asyncio.create_task(reply(connection, writer, event.stream_id, host, heads.pop(event.stream_id)))
                    replies.add(one)
                    one.add_done_callback(replies.discard)
    except (OSError, h2.exceptions.ProtocolError):
        pass
    finally:
        writer.close()
