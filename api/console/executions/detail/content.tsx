import { useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { Facts } from '../../kit/header.tsx'
import { Refused } from '../../kit/states.tsx'
import { isOpen } from '../../kit/status.tsx'
import { formatDuration, Time, Until } from '../../kit/time.tsx'
import { useRole } from '../../shell/role.tsx'
import type { VersionGraph } from '../../workflows/versions/data.ts'
import { ExecutionLink } from '../list.tsx'
import type { Run } from '../live.ts'
import type { NodeRecord, RecordState, useRecord } from '../records.ts'
import { lengthOf, tellRecordError } from '../steps.tsx'
import { placeOf, type Tree } from '../tree.ts'
import { tellUsage } from '../usage.ts'
import type { Approval } from '../waits/data.ts'
import { Asked, useDecide } from '../waits/decide.tsx'
import { EventActs } from '../waits/waiting.tsx'
import type { Wait } from '../waits/waits.ts'
import { AskedStart } from './again.tsx'
import { Attempts } from './attempts.tsx'
import { Files } from './files.tsx'
import { Turns } from './turns.tsx'
import { Raw, Value } from './value.tsx'

export type DetailProps = {
  run: Run
  tree: Tree
  graph: VersionGraph | undefined
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

type ContentProps = DetailProps & {
  record: RecordState
  name: string
  found: ReturnType<typeof useRecord>
}

/** What a record took and gave, why it failed, and what it asks for. */
export function Content(props: ContentProps) {
  const { run, tree, record, found, name, approvals, waits, now, onChoose, teamId } = props
  const { onDecide, dialog } = useDecide()
  const may = useRole(teamId)
  const [asked, setAsked] = useState<'node' | 'pin' | null>(null)
  const whole = found.record
  const approval = approvals.find((one) => isAt(one, record))
  const wait = waits.find((one) => one.kind === 'EVENT' && isAt(one, record))
  const steps = record.step === null ? (tree.steps.get(placeOf(record)) ?? []) : []
  const error = tellRecordError(record)
  const alone = record.step === null && !/TRIGGER$/.test(record.nodeType) && whole && !run.hidden
  // For a record that has not succeeded, the attempts say why, so they come first.
  const attempts = <Attempts executionId={run.id} record={record} hidden={run.hidden} now={now} />
  return (
    <>
      {dialog}
      <RecordFacts record={record} whole={whole} now={now} />
      {error && <p className="refusal said">{error}</p>}
      {approval && <Asked approval={approval} onDecide={onDecide} />}
      {wait && <AskedEvent executionId={run.id} wait={wait} />}
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
      <Values run={run} record={record} whole={whole} />
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

type WholeProps = { record: RecordState; whole: NodeRecord | undefined }

function RecordFacts({ record, whole, now }: WholeProps & { now: number }) {
  return (
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
  )
}

function AskedEvent({ executionId, wait }: { executionId: string; wait: Wait }) {
  return (
    <section className="asked" aria-label="Waits for an event">
      <h3>
        Waits for the event <code>{wait.name}</code>
      </h3>
      {wait.resumeUrl && (
        <p className="said">
          <code>{wait.resumeUrl}</code>
        </p>
      )}
      <EventActs executionId={executionId} wait={wait} />
    </section>
  )
}

/** Its output, its input, and the files in them, unless they are private. */
function Values({ run, record, whole }: WholeProps & { run: Run }) {
  if (run.hidden) return <p className="quiet">Its input and output are private</p>
  if (!whole) return null
  const file = `${record.nodeId}${record.iteration === null ? '' : `-${record.iteration}`}`
  return (
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
