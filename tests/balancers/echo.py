"""A replica that answers every request with its head, as JSON. Speaks HTTP/2 only, as the balancers should."""

import asyncio
import json

import h2.config
import h2.connection
import h2.events


async def serve(host, port):
    return await asyncio.start_server(converse, host, port)


async def converse(reader, writer):
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
                    body = json.dumps(heads.pop(event.stream_id)).encode()
                    head = [(":status", "200"), ("content-type", "application/json"), ("content-length", str(len(body)))]
                    connection.send_headers(event.stream_id, head)
                    connection.send_data(event.stream_id, body, end_stream=True)
    except (OSError, h2.exceptions.ProtocolError):
        pass
    finally:
        writer.close()
