import { setTimeout as sleep } from 'node:timers/promises'
import { type Connection, isGrpcServiceError, type WorkflowService } from '@temporalio/client'
import { Fault } from '../../db/fault.ts'
import { type Config, ConfigError } from '../config.ts'
import { readWorkerVersion } from '../engine/routing.ts'
import { readAddresses } from '../local/lock.ts'
import { connectClient } from '../temporal.ts'
import { type CommandArguments, UsageError } from './arguments.ts'

const GRPC = { NOT_FOUND: 5, FAILED_PRECONDITION: 9, UNAVAILABLE: 14, DEADLINE_EXCEEDED: 4 }
const LIMIT_MS = 10_000
const ROUTING_IN_PROGRESS = 1
type DescribeRequest = { namespace: string; deploymentName: string }

/** How a version is shown, by Temporal's status. */
const STATUS = {
  0: 'unknown',
  1: 'inactive',
  2: 'current',
  3: 'ramping',
  4: 'draining',
  5: 'drained',
  6: 'created',
} as const

/**
 * `deployment show`: prints one line per version that Temporal knows of: its build id, its status, since when, and how
 * many Temporal workflows are open on it.
 */
export async function runDeploymentShow(config: Config): Promise<void> {
  const { deploymentName } = config
  const { namespace } = config.temporal
  await onTemporal(config, async ({ workflowService }) => {
    const request = { namespace, deploymentName }
    const { workerDeploymentInfo: found } = await workflowService.describeWorkerDeployment(request)
    if (!readWorkerVersion(found?.routingConfig?.currentDeploymentVersion))
      console.log('New executions go to the workers without a version.')
    for (const { deploymentVersion, status, ...times } of found?.versionSummaries ?? []) {
      const buildId = deploymentVersion?.buildId ?? ''
      const query = `TemporalWorkerDeploymentVersion = "${deploymentName}:${buildId}" AND ExecutionStatus = "Running"`
      const { count } = await workflowService.countWorkflowExecutions({ namespace, query })
      const since = times.drainageInfo?.lastChangedTime ?? times.currentSinceTime ?? times.createTime
      const at = new Date(Number(since?.seconds ?? 0) * 1_000).toISOString()
      const state = STATUS[(status ?? 0) as keyof typeof STATUS] ?? STATUS[0]
      console.log(
        `${buildId.padEnd(20)}  ${state.padEnd(8)}  since ${at}  ${String(count ?? 0).padStart(6)} open`,
      )
    }
  })
}

/** `deployment set-current`: gives new runs to the workers of one version, or to those that have none. */
export async function runSetCurrent(config: Config, { words, options }: CommandArguments): Promise<void> {
  const [buildId] = words
  if ((buildId === undefined) === (options.unversioned === undefined))
    throw new UsageError('deployment set-current takes either a build id or --unversioned')
  const { deploymentName } = config
  const { namespace } = config.temporal
  await onTemporal(config, async ({ workflowService }) => {
    const request = { namespace, deploymentName, buildId: buildId ?? '', identity: 'npx perdure' }
    const was = await workflowService.setWorkerDeploymentCurrentVersion(request)
    await untilRouted(workflowService, { namespace, deploymentName })
    const before = was.previousDeploymentVersion?.buildId
    const is = buildId ? `the workers of ${buildId}` : 'the workers without a version'
    const old = before ? `those of ${before}` : 'those without a version'
    console.log(
      `New executions go to ${is}${before === (buildId ?? '') ? ', as before' : `; until now to ${old}`}.`,
    )
  })
}

/** Temporal answers before its task queues know of the change. */
async function untilRouted(service: WorkflowService, request: DescribeRequest): Promise<void> {
  for (;;) {
    const { workerDeploymentInfo } = await service.describeWorkerDeployment(request)
    if (workerDeploymentInfo?.routingConfigUpdateState !== ROUTING_IN_PROGRESS) return
    await sleep(100)
  }
}

/**
 * Calls `work` with the Temporal of TEMPORAL_ADDRESS, else with that of the `npm start` that is running on the data
 * folder. Temporal's refusals become Faults.
 */
async function onTemporal(config: Config, work: (connection: Connection) => Promise<void>): Promise<void> {
  const address = config.temporal.address ?? readAddresses(config.dataDir)?.temporalAddress
  if (!address) {
    throw new ConfigError(
      `TEMPORAL_ADDRESS must be set, or \`npm start\` must be running on the data folder ${config.dataDir}`,
    )
  }
  const connection = connectClient({ ...config, temporal: { ...config.temporal, address } })
  try {
    await connection.withDeadline(Date.now() + LIMIT_MS, () => work(connection))
  } catch (error) {
    if (!isGrpcServiceError(error)) throw error
    const { code, details } = error
    if (code === GRPC.NOT_FOUND) {
      throw new Fault(
        'NOT_FOUND',
        `no worker of this version has come to Temporal yet: start one with DEPLOYMENT_BUILD_ID first (${details})`,
      )
    }
    if (code === GRPC.FAILED_PRECONDITION) throw new Fault('CONFLICT', `Temporal refuses it: ${details}`)
    const away = code === GRPC.UNAVAILABLE || code === GRPC.DEADLINE_EXCEEDED
    throw new Fault(
      'UNAVAILABLE',
      `Temporal at ${address} ${away ? 'cannot be reached' : 'failed'}: ${details}`,
    )
  } finally {
    await connection.close()
  }
}
