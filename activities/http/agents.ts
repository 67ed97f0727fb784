import { Agent } from 'undici'
import type { Egress } from '../egress/egress.ts'
import { isHookPath } from '../egress/ownplaces.ts'

/** Pools of connections that follow the egress rules. */
export type Agents = {
  /** The pool for a request to `url`. Ask anew for each request and each redirect. */
  choose(url: URL): Agent
  close(): Promise<void>
}

/**
 * Requests to hooks have a pool of their own, since only they may reach the service's own API. Whether a
 * connection leads there is known only once its name is looked up, so the pool decides by the path, and its
 * connections by the address. `findEgress` returns the rules that hold at the moment, the same object for the same
 * rules; `bases` are the paths under which the API is served.
 */
export function createAgents(findEgress: () => Egress, bases: readonly string[]): Agents {
  const opened = new Set<Agent>()
  let egress = findEgress()
  let loopback = egress.allowsLoopback()
  let pools = openPools()

  function openPools() {
    const pair = { hooks: openPool(egress.connectToHooks), others: openPool(egress.connect) }
    opened.add(pair.hooks).add(pair.others)
    return pair
  }

  /** Requests under way go on; nothing else uses connections that were made under the rules of before. */
  function renewPools(): void {
    for (const pool of opened) void pool.close().finally(() => opened.delete(pool))
    pools = openPools()
  }

  return {
    choose(url) {
      const current = findEgress()
      const allows = current.allowsLoopback()
      if (current !== egress || (loopback && !allows)) {
        egress = current
        renewPools()
      }
      loopback = allows
      return ['', ...bases].some((base) => isHookPath(url.pathname, base)) ? pools.hooks : pools.others
    },
    async close() {
      await Promise.all([...opened].map((pool) => pool.destroy()))
    },
  }
}

function openPool(connect: NonNullable<Agent.Options['connect']>): Agent {
  return new Agent({
    connect,
    allowH2: false,
    // The HTTP client has one deadline for everything.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 64 * 1024,
  })
}
