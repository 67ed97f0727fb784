import { useEffect, useRef, useState } from 'react'
import type { Approval } from '../../approvals/data.ts'
import { Asked, useDecide } from '../../approvals/decide.tsx'
import { JsonTree } from '../../kit/code/jsontree.tsx'
import { Button } from '../../kit/controls/button.tsx'
import { Facts } from '../../kit/header.tsx'
import { Refused } from '../../kit/states.tsx'
import { isOpen, nameConstant, Pill, StatusBadge } from '../../kit/status.tsx'
import { formatDuration, Time, Until } from '../../kit/time.tsx'
import { useRole } from '../../shell/role.tsx'
import type { Graph } from '../../workflows/versions/data.ts'
import { ExecutionLink } from '../list.tsx'
import type { Run } from '../live.ts'
import { type NodeRecord, type RecordState, useRecord } from '../records.ts'
import { lengthOf, Marks, tellRecordError } from '../steps.tsx'
import { describeRecord, nameRecord, placeOf, type Tree } from '../tree.ts'
import { tellUsage } from '../usage.ts'
import { EventActs } from '../waiting.tsx'
import type { Wait } from '../waits.ts'
import { AskedStart } from './again.tsx'
import { Attempts } from './attempts.tsx'
import './detail.css'
import { Files } from './files.tsx'
import { Siblings } from './siblings.tsx'
import { Turns } from './turns.tsx'
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
  const error = tellRecordError(record)
  const file = `${record.nodeId}${record.iteration === null ? '' : `-${record.iteration}`}`
  const alone = record.step === null && !/TRIGGER$/.test(record.nodeType) && whole && !run.hidden
  // Of what has not succeeded they say why, so they come first.
  const attempts = <Attempts executionId={run.id} record={record} hidden={run.hidden} now={now} />
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
            record.nextAttemptAt && isOpen(record.status) && (
              <Until key="n" at={record.nextAttemptAt} now={now} />
            ),
          ],
          [
            'Waits until',
            record.waitingUntil && isOpen(record.status) && (
              <Until key="w" at={record.waitingUntil} now={now} />
            ),
          ],
          ['Items', whole?.itemsTaken && `${whole.itemsTaken} of ${whole.itemCount} were taken over`],
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
      {record.status !== 'SUCCESS' && attempts}
      {steps.length > 0 && <Turns steps={steps} run={run} onChoose={onChoose} />}
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
      {record.status === 'SUCCESS' && attempts}
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
