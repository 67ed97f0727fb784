import { useEffect, useRef, useState } from 'react'
import { Asked, useDecide } from '../../approvals/decide.tsx'
import type { Approval } from '../../data/approvals.ts'
import type { Graph } from '../../data/graphs.ts'
import { type NodeRecord, type RecordState, useRecord } from '../../data/records.ts'
import type { Wait } from '../../data/waits.ts'
import { Button } from '../../kit/button.tsx'
import { Facts } from '../../kit/header.tsx'
import { JsonTree } from '../../kit/jsontree.tsx'
import { Refused } from '../../kit/states.tsx'
import { isOpen, nameConstant, Pill, StatusBadge, StatusSign } from '../../kit/status.tsx'
import { formatDuration, formatMoney, Time } from '../../kit/time.tsx'
import { useRole } from '../../shell/role.tsx'
import { ExecutionLink } from '../list.tsx'
import type { Run } from '../live.ts'
import { NodeDialog, PinDialog } from '../starting.tsx'
import { lengthOf, Marks, tellError } from '../steps.tsx'
import { describeRecord, findLoop, nameRecord, placeOf, type Tree } from '../tree.ts'
import { tellUsage } from '../usage.ts'
import { EventActs } from '../waiting.tsx'
import './detail.css'
import { Files } from './files.tsx'
import { Attempts } from './requests.tsx'
import { Raw, Value } from './value.tsx'

type DetailProps = {
  run: Run
  tree: Tree
  graph: Graph | undefined
  teamId: string | undefined
  nodeId: string
  record: RecordState | undefined
  known: NodeRecord | undefined
  approvals: readonly Approval[]
  waits: readonly Wait[]
  now: number
  onChoose: (record: RecordState) => void
  onClose: () => void
}

/** All there is to know of one record: what it took and gave, each attempt, what it waits for. */
export function Detail(props: DetailProps) {
  const { run, tree, graph, nodeId, record, known, now, onChoose, onClose } = props
  const siblings = tree.byNode.get(nodeId) ?? []
  const rank = record
    ? run.records.filter((one) => one.nodeId === nodeId).findIndex(({ id }) => id === record.id)
    : 0
  const found = useRecord(run.id, record, known, Math.max(0, rank))
  const node = graph?.nodes.find(({ id }) => id === nodeId)
  const name = record ? nameRecord(record) : node?.name || nodeId
  const place = useRef<HTMLElement>(null)
  // What was read of the record before is of no use to the next one.
  const shown = record?.id ?? nodeId
  // biome-ignore lint/correctness/useExhaustiveDependencies: another record begins at its top
  useEffect(() => {
    place.current?.scrollTo({ top: 0 })
  }, [shown])
  return (
    <aside className="detail" aria-label={`Record of ${name}`} ref={place}>
      <header>
        <div className="detail-title">
          <h2>
            {name}
            {record?.iteration != null && <span className="quiet"> #{record.iteration}</span>}
          </h2>
          <Button small look="plain" icon="close" aria-label="Close the record" onClick={onClose} />
        </div>
        <div className="row">
          {record ? <StatusBadge status={record.status} /> : <Pill>Not executed</Pill>}
          <span className="quiet">{record ? describeRecord(record) : node && nameConstant(node.type)}</span>
          {record && <Marks record={record} known={found.record} />}
        </div>
        {siblings.length > 1 && record && <Siblings records={siblings} record={record} onChoose={onChoose} />}
      </header>
      {record && <Content key={record.id} {...props} record={record} name={name} found={found} now={now} />}
      {node && Object.keys(Object(node.config)).length > 0 && (
        <details className="detail-config">
          <summary>Settings of the node</summary>
          <JsonTree label="Settings" value={node.config} />
        </details>
      )}
    </aside>
  )
}

type SiblingProps = {
  records: readonly RecordState[]
  record: RecordState
  onChoose: (record: RecordState) => void
}

/** The same node in the other iterations. */
function Siblings({ records, record, onChoose }: SiblingProps) {
  const [failedOnly, setFailedOnly] = useState(false)
  const failed = records.filter(({ status }) => status === 'FAILED')
  const among = failedOnly ? failed : records
  const at = among.findIndex(({ iteration }) => iteration === record.iteration)
  const go = (to: number) => {
    const next = among[to]
    if (next) onChoose(next)
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is laid out in its own way
    <div className="row" role="group" aria-label="Iterations of this node">
      <Button
        small
        icon="back"
        aria-label="Iteration before"
        onClick={() => go(at < 0 ? among.length - 1 : at - 1)}
        disabled={at === 0}
      />
      <span className="quiet">
        {at < 0 ? '–' : (at + 1).toLocaleString()} of {among.length.toLocaleString()}
        {failedOnly ? ' failed' : ''}
      </span>
      <Button
        small
        icon="right"
        aria-label="Next iteration"
        onClick={() => go(at + 1)}
        disabled={at === among.length - 1}
      />
      {failed.length > 0 && (
        <Button
          small
          look="plain"
          aria-pressed={failedOnly}
          onClick={() => {
            setFailedOnly(!failedOnly)
            if (!failedOnly && record.status !== 'FAILED') onChoose(failed[0]!)
          }}
        >
          Failed only ({failed.length})
        </Button>
      )}
    </div>
  )
}

type ContentProps = DetailProps & {
  record: RecordState
  name: string
  found: ReturnType<typeof useRecord>
}

function Content(props: ContentProps) {
  const { run, tree, record, found, name, approvals, waits, now, onChoose, teamId } = props
  const { onDecide, dialog } = useDecide()
  const may = useRole(teamId)
  const [asked, setAsked] = useState<'node' | 'pin' | null>(null)
  const whole = found.record
  const approval = approvals.find((one) => isAt(one, record))
  const wait = waits.find((one) => one.kind === 'EVENT' && isAt(one, record))
  const steps = record.step === null ? (tree.steps.get(placeOf(record)) ?? []) : []
  const error = tellError(record)
  const file = `${record.nodeId}${record.iteration === null ? '' : `-${record.iteration}`}`
  const alone = record.step === null && !/TRIGGER$/.test(record.nodeType) && whole && !run.hidden
  return (
    <>
      {dialog}
      <Facts
        facts={[
          ['Started', <Time key="s" at={record.startedAt} />],
          ['Ended', record.completedAt && <Time key="e" at={record.completedAt} />],
          ['Duration', formatDuration(lengthOf(record, now))],
          ['Attempts', record.retryCount + 1],
          [
            'Next attempt',
            record.nextAttemptAt && isOpen(record.status) && <Time key="n" at={record.nextAttemptAt} />,
          ],
          ['Node', <code key="id">{record.nodeId}</code>],
          ['Taken over from', whole?.takenFrom && <ExecutionLink key="t" id={whole.takenFrom} />],
          ['Sub workflow', whole?.childExecutionId && <ExecutionLink key="c" id={whole.childExecutionId} />],
          ['Models', whole?.usage && tellUsage(whole.usage)],
        ]}
      />
      {error && <p className="refusal said">{error}</p>}
      {approval && <Asked approval={approval} onDecide={onDecide} />}
      {wait && (
        <section className="asked" aria-label="Waits for an event">
          <h3>
            Waits for the event <code>{wait.name}</code>
          </h3>
          {wait.resumeUrl && (
            <p className="said">
              <code>{wait.resumeUrl}</code>
            </p>
          )}
          <EventActs executionId={run.id} wait={wait} />
        </section>
      )}
      {whole?.warnings?.map(({ path, message }) => (
        <p className="hint said" key={`${path} ${message}`}>
          <code>{path}</code> {message}
        </p>
      ))}
      {steps.length > 0 && <Steps steps={steps} run={run} onChoose={onChoose} />}
      {whole?.console && (
        <section aria-label="Console">
          <h3>Console</h3>
          <Raw
            label="Console's text"
            text={whole.console.map(({ level, text }) => `${level.padEnd(5)} ${text}`).join('\n')}
          />
        </section>
      )}
      <Refused error={found.error} />
      {run.hidden ? (
        <p className="quiet">Its input and output are private</p>
      ) : (
        whole && (
          <>
            {whole.outputData === null ? (
              <p className="quiet">{isOpen(record.status) ? 'No output yet' : 'No output'}</p>
            ) : (
              <Value
                label="Output"
                value={whole.outputData}
                root={nameRoot(record.nodeId)}
                file={`${file}-output`}
              />
            )}
            <Files executionId={run.id} values={[whole.outputData, whole.inputData]} />
            <Value label="Input" value={whole.inputData} root="$input" file={`${file}-input`} />
          </>
        )
      )}
      <Attempts
        executionId={run.id}
        record={record}
        seen={run.attempts.get(record.id) ?? []}
        hidden={run.hidden}
      />
      {alone && teamId && may('BUILDER') && (
        <div className="row">
          <Button small icon="play" onClick={() => setAsked('node')}>
            Execute this node alone
          </Button>
          {record.iteration === null && whole.outputData !== null && (
            <Button small onClick={() => setAsked('pin')}>
              Execute with this output pinned
            </Button>
          )}
        </div>
      )}
      {asked && teamId && whole && (
        <AskedStart
          how={asked}
          {...{ run, tree, teamId, name, record, whole }}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  )
}

type StartProps = {
  how: 'node' | 'pin'
  run: Run
  tree: Tree
  teamId: string
  name: string
  record: RecordState
  whole: NodeRecord
  onClose: () => void
}

function AskedStart({ how, run, tree, teamId, name, record, whole, onClose }: StartProps) {
  const loop = findLoop(record, tree.parents)
  // The first record of an iteration has taken the item.
  const first = loop && tree.loops.get(loop.place)?.find(({ number }) => number === loop.number)?.records[0]
  const item = first && run.nodeExecutions.find(({ id }) => id === first.id)?.inputData
  const about = {
    ...{ run, name, onClose },
    nodeId: record.nodeId,
    input: whole.inputData,
    item,
    output: whole.outputData,
    handle: whole.handle,
  }
  return how === 'node' ? <NodeDialog {...about} /> : <PinDialog {...about} teamId={teamId} />
}

/** Whether a wait is this record's. */
function isAt(
  wait: { nodeId: string; iteration: string | null; step?: number | null },
  record: RecordState,
): boolean {
  return (
    wait.nodeId === record.nodeId &&
    wait.iteration === record.iteration &&
    (wait.step === undefined || wait.step === record.step) &&
    record.status === 'RUNNING'
  )
}

function nameRoot(nodeId: string): string {
  return /^[A-Za-z_]\w*$/.test(nodeId) ? `$nodes.${nodeId}` : `$nodes.\`${nodeId}\``
}

type StepsProps = { steps: readonly RecordState[]; run: Run; onChoose: (record: RecordState) => void }

/** The turns of an agent's model and the tools that it called, with what each took. */
function Steps({ steps, run, onChoose }: StepsProps) {
  const values = new Map(run.nodeExecutions.map((one) => [one.id, one]))
  return (
    <section aria-label="Steps of the agent">
      <h3>Steps of the agent</h3>
      <ol className="agent-steps">
        {steps.map((step) => {
          const usage = values.get(step.id)?.usage
          return (
            <li key={step.id}>
              <button type="button" onClick={() => onChoose(step)}>
                <StatusSign status={step.status} />
                <span className="name">{step.tool === null ? 'The model' : `The tool ${step.tool}`}</span>
                <span className="quiet">
                  {usage &&
                    `${(usage.inputTokens + usage.outputTokens).toLocaleString()} tokens, ${usage.cost === null ? 'cost not known' : formatMoney(usage.cost)}`}
                </span>
                <span>{formatDuration(step.durationMs)}</span>
              </button>
            </li>
          )
        })}
      </ol>
    </section>
  )
}
