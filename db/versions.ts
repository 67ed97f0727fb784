import { sql } from 'kysely'
import type { Graph } from '../workflows/graph.ts'
import { type Db, json } from './connection.ts'
import { Fault } from './fault.ts'

import type { Store, Tx } from './scope.ts'

const MAX_CACHED_BYTES = 64_000_000
/** What an entry costs at least, so that many tiny graphs are bounded too. */
const ENTRY_BYTES = 4_000

type Cache = { graphs: Map<string, { graph: Graph; bytes: number }>; bytes: number }

const caches = new WeakMap<Db, Cache>()

/**
 * The graph of a version. Versions never change, so the least recently used ones are kept in memory: whoever
 * reads a graph must not change it. Throws NOT_FOUND.
 */
export async function readVersion(store: Store, workflowId: string, version: number): Promise<Graph> {
  const cache = cacheOf(store.db)
  const key = `${workflowId}/${version}`
  const cached = cache.graphs.get(key)
  if (cached) {
    cache.graphs.delete(key)
    cache.graphs.set(key, cached)
    return cached.graph
  }
  const row = await store.db
    .selectFrom('workflowVersions')
    .select(['nodes', 'edges'])
    .select(sql<number>`octet_length(nodes::text) + octet_length(edges::text)`.as('bytes'))
    .where('workflowId', '=', workflowId)
    .where('version', '=', version)
    .executeTakeFirst()
  if (!row) throw new Fault('NOT_FOUND', 'There is no such version of the workflow')
  const graph = { nodes: row.nodes, edges: row.edges } as Graph
  keep(cache, key, { graph, bytes: row.bytes + ENTRY_BYTES })
  return graph
}

/** Adds a version. Only whoever holds the workflow's row locked, or has just made it, may number one. */
export async function addVersion(
  tx: Tx,
  workflowId: string,
  version: number,
  graph: Graph,
  createdBy: string | null,
): Promise<void> {
  await tx
    .insertInto('workflowVersions')
    .values({
      workflowId,
      version,
      nodes: json(graph.nodes),
      edges: json(graph.edges),
      nodeCount: graph.nodes.length,
      createdBy,
    })
    .execute()
}

function cacheOf(db: Db): Cache {
  let cache = caches.get(db)
  if (!cache) {
    cache = { graphs: new Map(), bytes: 0 }
    caches.set(db, cache)
  }
  return cache
}

function keep(cache: Cache, key: string, entry: { graph: Graph; bytes: number }): void {
  cache.bytes += entry.bytes - (cache.graphs.get(key)?.bytes ?? 0)
  cache.graphs.delete(key)
  cache.graphs.set(key, entry)
  for (const [oldest, { bytes }] of cache.graphs) {
    if (cache.bytes <= MAX_CACHED_BYTES) return
    cache.graphs.delete(oldest)
    cache.bytes -= bytes
  }
}
