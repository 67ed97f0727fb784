import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'

/**
 * A received span. `kind` and `status` are OTLP's numbers
 * (kinds: 2 server, 3 client; status: 2 error), times epoch ms.
 */
export type Received = {
  traceId: string
  spanId: string
  /** Empty for the root of a trace. */
  parentId: string
  name: string
  kind: number
  startedAt: number
  endedAt: number
  attributes: Record<string, string | number | boolean>
  status: number
  service: string
}

/** Starts a loopback OTLP/HTTP collector that reads protobuf, as real ones do on port 4318. */
export async function startCollector() {
  const spans: Received[] = []
  const faults: string[] = []
  const waiters: (() => void)[] = []
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const body = Buffer.concat(parts)
    const type = request.headers['content-type']
    if (request.method !== 'POST' || request.url !== '/v1/traces' || type !== 'application/x-protobuf')
      faults.push(`${request.method} ${request.url} ${type}`)
    else spans.push(...readRequest(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body))
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    for (const wake of waiters.splice(0)) wake()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    faults,
    /**
     * Resolves with a trace's spans once `holds` returns true for them. It is called again after each batch.
     */
    async until(traceId: string, holds: (spans: Received[]) => boolean): Promise<Received[]> {
      for (;;) {
        const found = spans.filter((span) => span.traceId === traceId)
        if (holds(found)) return found
        await new Promise<void>((resolve) => waiters.push(resolve))
      }
    },
    async stop(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Yields the fields of a protobuf message in order. Varints come as `varint`, all others as `value`. */
function* readFields(bytes: Buffer): Generator<[field: number, value: Buffer, varint: number]> {
  let at = 0
  const readVarint = () => {
    let value = 0
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++]!
      value += (byte & 127) * shift
      if (byte < 128) return value
    }
  }
  while (at < bytes.length) {
    const tag = readVarint()
    const field = Math.floor(tag / 8)
    const kind = tag & 7
    if (kind === 0) yield [field, Buffer.alloc(0), readVarint()]
    else {
      const length = kind === 1 ? 8 : kind === 5 ? 4 : readVarint()
      yield [field, bytes.subarray(at, at + length), 0]
      at += length
    }
  }
}

function find(bytes: Buffer, field: number): Buffer[] {
  return [...readFields(bytes)].flatMap(([number, value]) => (number === field ? [value] : []))
}

// Field numbers of ExportTraceServiceRequest: resource_spans is 1; in it resource is 1 and scope_spans 2; in
// that spans is 2.
function readRequest(bytes: Buffer): Received[] {
  return find(bytes, 1).flatMap((group) => {
    const resource = readAttributes(find(find(group, 1)[0]!, 1))
    const service = String(resource['service.name'])
    return find(group, 2).flatMap((scope) => find(scope, 2).map((span) => ({ ...readSpan(span), service })))
  })
}

function readSpan(bytes: Buffer): Omit<Received, 'service'> {
  const [first, all] = [(field: number) => find(bytes, field)[0], (field: number) => find(bytes, field)]
  const time = (field: number) => Number(first(field)!.readBigUInt64LE() / 1_000_000n)
  const number = (from: Buffer, field: number) => [...readFields(from)].find(([n]) => n === field)?.[2] ?? 0
  const status = first(15)
  return {
    traceId: first(1)!.toString('hex'),
    spanId: first(2)!.toString('hex'),
    parentId: first(4)?.toString('hex') ?? '',
    name: first(5)!.toString(),
    kind: number(bytes, 6),
    startedAt: time(7),
    endedAt: time(8),
    attributes: readAttributes(all(9)),
    status: status ? number(status, 3) : 0,
  }
}

function readAttributes(pairs: Buffer[]): Received['attributes'] {
  return Object.fromEntries(
    pairs.map((pair) => {
      const [field, text, varint] = [...readFields(find(pair, 2)[0]!)][0]!
      const value = field === 1 ? text.toString() : field === 2 ? varint === 1 : varint
      return [find(pair, 1)[0]!.toString(), value]
    }),
  )
}
