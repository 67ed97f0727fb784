import { createRequire } from 'node:module'
import { DefaultFailureConverter, defaultPayloadConverter, TypedSearchAttributes } from '@temporalio/common'
import type { coresdk } from '@temporalio/proto'
import proto from '@temporalio/proto'
import { bundleWorkflows } from '../../worker/engine/bundle.ts'
import type { RunInput } from '../../workflows/run/messages.ts'

export type Job = proto.coresdk.workflow_activation.IWorkflowActivationJob
export type Command = coresdk.workflow_commands.IWorkflowCommand

/** What a workflow task says of the run's history. */
type Facts = { now: number; historyLength: number; suggestsNewRun: boolean }

type Completion = { failed?: { failure?: { message?: string } }; successful?: { commands?: Command[] } }
type Instance = {
  activate(activation: unknown): Promise<Completion>
  getAndResetSinkCalls(): Promise<{ ifaceName: string; fnName: string }[]>
  dispose(): Promise<void>
}

/** Makes instances of the bundle's workflows, as the SDK's worker does in its own thread. */
export type Sandbox = { create(options: object): Promise<Instance> }

/** The bundle that the service gives to Temporal, in the virtual machine that the SDK runs it in. */
export async function openSandbox(): Promise<Sandbox> {
  const require = createRequire(import.meta.url)
  const { ReusableVMWorkflowCreator } = require('@temporalio/worker/lib/workflow/reusable-vm')
  const { parseWorkflowCode } = require('@temporalio/worker/lib/worker')
  const { globalHandlers } = require('@temporalio/worker/lib/workflow/vm-shared')
  // Otherwise it notes the stack of each promise, for a query that nobody sends: most of the time goes there.
  globalHandlers.installed = true
  const { code } = await bundleWorkflows()
  const names = new Set(['runNode', 'walkSegment'])
  const creator = await ReusableVMWorkflowCreator.create(parseWorkflowCode(code), undefined, names)
  return { create: (options) => creator.createWorkflow(options) }
}

/** One Temporal run's workflow. It can be lost, and is then made again from what it was told before. */
export type Carrier = {
  /** Has the workflow take the jobs. Returns its commands; throws if its code fails. */
  activate(jobs: Job[], facts: Facts): Promise<Command[]>
  /** Says that what was told so far is in the history. */
  commit(): void
  /** Loses the workflow, and makes it again from what is in the history. Throws if it does not replay. */
  lose(): Promise<void>
  /** Whether the run has said that it is about to close. */
  isClosing(): boolean
  dispose(): Promise<void>
}

const converter = new DefaultFailureConverter({ encodeCommonAttributes: true })

type Told = { jobs: Job[]; facts: Facts; commands: string }

const { WorkflowActivation } = proto.coresdk.workflow_activation

export async function carryRun(
  sandbox: Sandbox,
  { workflowId, runId, input, startedAt, firstAt }: RunStart,
): Promise<Carrier> {
  const told: Told[] = []
  let kept = 0
  let closing = false
  let instance = await start()

  function start(): Promise<Instance> {
    const info = {
      workflowId,
      runId,
      workflowType: 'runGraph',
      searchAttributes: {},
      typedSearchAttributes: new TypedSearchAttributes(),
      taskQueue: 'simulator',
      namespace: 'default',
      firstExecutionRunId: runId,
      originalExecutionRunId: runId,
      startTime: new Date(startedAt),
      runStartTime: new Date(startedAt),
      taskTimeoutMs: 10_000,
      attempt: 1,
      historyLength: 3,
      historySize: 100,
      continueAsNewSuggested: false,
      targetWorkerDeploymentVersionChanged: false,
      currentBuildId: '',
      unsafe: { now: () => 0, isReplaying: false, isReplayingHistoryEvents: false, random: () => 0 },
    }
    const seed = Array.from({ length: 8 }, (_, at) => at)
    return sandbox.create({ info, randomnessSeed: seed, now: firstAt, failureExceptionTypeNames: [] })
  }

  async function tell(jobs: Job[], facts: Facts, isReplaying: boolean): Promise<Command[]> {
    const activation = WorkflowActivation.fromObject({
      runId,
      timestamp: stamp(facts.now),
      isReplaying,
      historyLength: facts.historyLength,
      continueAsNewSuggested: facts.suggestsNewRun,
      jobs,
    })
    const { failed, successful } = await instance.activate(activation)
    if (failed) {
      const error = converter.failureToError(failed.failure as never, defaultPayloadConverter)
      throw new Error(`The workflow's code failed: ${error.stack}`)
    }
    const calls = await instance.getAndResetSinkCalls()
    if (calls.some(({ fnName }) => fnName === 'closing')) closing = true
    return successful?.commands ?? []
  }

  return {
    async activate(jobs, facts) {
      const isFirst = told.length === 0
      const all = isFirst ? [describeStart(workflowId, input, startedAt), ...jobs] : jobs
      const commands = await tell(all, facts, false)
      told.push({ jobs: all, facts, commands: JSON.stringify(commands) })
      return commands
    },
    commit() {
      kept = told.length
    },
    async lose() {
      await instance.dispose()
      told.splice(kept)
      closing = false
      instance = await start()
      for (const { jobs, facts, commands } of told) {
        const again = JSON.stringify(await tell([...listPatches(commands), ...jobs], facts, true))
        if (again !== commands) throw new Error(`The run does not replay: ${commands} became ${again}`)
      }
    },
    isClosing: () => closing,
    dispose: () => instance.dispose(),
  }
}

/** What the workflow is told, when it replays, of the patches that its history has. */
function listPatches(commands: string): Job[] {
  return (JSON.parse(commands) as Command[]).flatMap(({ setPatchMarker }) =>
    setPatchMarker ? [{ notifyHasPatch: { patchId: setPatchMarker.patchId } }] : [],
  )
}

export type RunStart = {
  workflowId: string
  runId: string
  input: RunInput
  /** When the run and its first workflow task were started, in epoch milliseconds. */
  startedAt: number
  firstAt: number
}

function describeStart(workflowId: string, input: RunInput, startedAt: number): Job {
  const payload = defaultPayloadConverter.toPayload(input)!
  return {
    initializeWorkflow: {
      workflowId,
      workflowType: 'runGraph',
      arguments: [payload],
      attempt: 1,
      startTime: stamp(startedAt),
    } as Job['initializeWorkflow'],
  }
}

function stamp(ms: number) {
  return { seconds: Math.floor(ms / 1_000), nanos: (ms % 1_000) * 1_000_000 } as never
}
