import { Agent } from 'undici'
import { createEgress, type EgressOptions } from './egress.ts'
import { isHookPath } from './ownplaces.ts'

/** Pools of connections that follow the egress rules. */
export type Agents = {
  /** The pool for a request to `url`. Ask anew for each request and each redirect. */
  choose(url: URL): Agent
  close(): Promise<void>
}

/**
 * Requests to hooks have a pool of their own, since only they may reach the service's own API. Whether a
 * connection leads there is known only once its name is looked up, so the pool decides by the path, and its
 * connections by the address.
 */
export function createAgents(options: EgressOptions): Agents {
  const egress = createEgress(options)
  const bases = (options.own?.() ?? []).flatMap(({ base }) => base ?? [])
  const opened: Agent[] = []
  let pools = openPools()
  let loopback = egress.allowsLoopback()

  function openPools() {
    const pair = { hooks: openPool(egress.connectToHooks), others: openPool(egress.connect) }
    opened.push(pair.hooks, pair.others)
    return pair
  }

  return {
    choose(url) {
      if (loopback && !egress.allowsLoopback()) {
        // Connections that are kept alive were made under the rules of before.
        for (const pool of opened) void pool.close()
        pools = openPools()
        loopback = false
      }
      return ['', ...bases].some((base) => isHookPath(url.pathname, base)) ? pools.hooks : pools.others
    },
    async close() {
      await Promise.all(opened.map((pool) => pool.destroy()))
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
