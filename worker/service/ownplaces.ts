import pg from 'pg'
import type { OwnPlace } from '../../activities/egress/ownplaces.ts'
import { isLoopback } from '../../api/http/host.ts'
import type { Config } from '../config.ts'
import { listEmbeddedPorts } from '../local/lock.ts'

const TEMPORAL = 'the Temporal server of this service'

/**
 * The places that workflows must not reach under any egress rule: the service's database, its Temporal, its metrics,
 * and of its API everything but the hooks. (A process knows where others listen only by the settings that they share.)
 * List them anew from time to time: embedded Temporal takes other ports at each of its starts.
 */
export function listOwnPlaces(config: Config, servesApi: boolean): OwnPlace[] {
  // By itself a worker only knows where an API listens that is set up like it, for this machine alone.
  const isCertain = servesApi || config.isLocal
  const { host, port } = config
  const api: OwnPlace = { what: 'this service itself', host, port: port.number, isApi: true, isCertain }
  return [...listServers(config), api, ...listNames(config)]
}

function listServers({ databaseUrl, temporal, dataDir, workerMetricsPort, host }: Config): OwnPlace[] {
  const places: OwnPlace[] = []
  if (databaseUrl) {
    // pg also reads PGHOST and the like. A socket's folder means a server on this machine, which usually listens here
    // too.
    const client = new pg.Client({ connectionString: databaseUrl })
    const at = client.host.startsWith('/') ? '127.0.0.1' : client.host
    places.push({ what: 'the database of this service', host: at, port: client.port })
  }
  if (temporal.address) {
    const [, at, own] = /^(.*):(\d+)$/.exec(temporal.address)!
    const ports = [Number(own), ...temporal.guardedPorts, ...listEmbeddedPorts(dataDir, Number(own))]
    for (const each of new Set(ports)) places.push({ what: TEMPORAL, host: at!, port: each })
  }
  if (temporal.uiUrl) {
    const { protocol, hostname, port } = new URL(temporal.uiUrl)
    const at = { host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) }
    // Behind a public name, other services may be at the same address.
    places.push({ what: TEMPORAL, ...at, byName: !isLoopback(hostname) })
  }
  if (workerMetricsPort) places.push({ what: 'this service itself', host, port: workerMetricsPort })
  return places
}

/** The names under which the API is reached, through a proxy or not. */
function listNames({ publicUrl, allowedHosts, port }: Config): OwnPlace[] {
  const { hostname, port: given, pathname } = new URL(publicUrl)
  // A proxy usually listens on both of the usual ports.
  const outer = given === '' ? [80, 443] : [Number(given)]
  const base = pathname.replace(/\/+$/, '')
  const names = [hostname, ...allowedHosts.filter((name) => !name.startsWith('*'))]
  return names.flatMap((name) =>
    [...new Set([...outer, port.number])].map((each) => ({
      what: 'this service itself',
      host: name,
      port: each,
      isApi: true,
      // Behind a public name, other services may be at the same address.
      byName: !isLoopback(name),
      ...(base ? { base } : {}),
    })),
  )
}
