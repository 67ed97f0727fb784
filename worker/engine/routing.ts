import type { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import { startLoop } from '../service/queue.ts'

/** A version of this installation's workers, as Temporal names it. */
export type DeploymentVersion = { deploymentName: string; buildId: string }

const EVERY_MS = 2_000
const WORKFLOW_QUEUE = 1

export type Routing = {
  /**
   * Whether Temporal gives new runs to workers of this process's version, and to no other. Known to be so at most two
   * seconds ago; at first only workers without versions assume it.
   */
  isOurs(): boolean
  stop(): void
}

/**
 * Watches which version Temporal gives the runs that begin. An eager start passes it by: the process that asks for one
 * gets the run. So one of an older version would never drain, and one that was rolled back would go on.
 */
export function watchRouting(options: {
  client: Client
  taskQueue: string
  version: DeploymentVersion | undefined
  log: Logger
}): Routing {
  const { client, taskQueue, version, log } = options
  const own = version && nameVersion(version)
  let ours = version === undefined
  let said: string | undefined

  async function look(): Promise<void> {
    const { namespace } = client.options
    const request = { namespace, taskQueue: { name: taskQueue }, taskQueueType: WORKFLOW_QUEUE }
    const { versioningInfo } = await client.workflowService.describeTaskQueue(request)
    const current = readWorkerVersion(versioningInfo?.currentDeploymentVersion)
    const ramps = (versioningInfo?.rampingVersionPercentage ?? 0) > 0
    ours = current === own && !ramps
    const now = `${current}, ${ramps}`
    if (now !== said && (said !== undefined || !ours)) {
      const facts = { version: own ?? 'none', current: current ?? 'none', ramps }
      log.info(facts, ours ? 'new runs come to this version' : 'new runs do not all come to this version')
    }
    said = now
  }
  const loop = startLoop({
    what: 'the version of new runs',
    everyMs: EVERY_MS,
    log,
    // While Temporal cannot be reached nothing starts; what was known last stays.
    run: () =>
      look().catch((error) => log.debug({ err: error }, 'Temporal does not say which version is current')),
  })
  return { isOurs: () => ours, stop: () => void loop.stop() }
}

/** Reads a version from Temporal's API; undefined for the workers without one. */
export function readWorkerVersion(
  found: { deploymentName?: string | null; buildId?: string | null } | null | undefined,
): string | undefined {
  const { deploymentName, buildId } = found ?? {}
  return deploymentName && buildId ? nameVersion({ deploymentName, buildId }) : undefined
}

function nameVersion({ deploymentName, buildId }: DeploymentVersion): string {
  return `${deploymentName}:${buildId}`
}
