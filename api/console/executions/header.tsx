import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import { go } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { CopyButton, copyText } from '../kit/controls/copy.tsx'
import { Facts, PageHeader } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Menu } from '../kit/overlays/menu.tsx'
import { isOpen, nameConstant, Pill, StatusBadge } from '../kit/status.tsx'
import { formatDuration, Time } from '../kit/time.tsx'
import { useCommands } from '../shell/commands.tsx'
import { type Role, useRole } from '../shell/role.tsx'
import { cancelExecution, deleteExecution } from './data.ts'
import { saveText } from './detail/save.ts'
import { ExecutionLink } from './list.tsx'
import type { Run } from './live.ts'
import { tellStarter } from './starter.tsx'
import { InputDialog, RecoverDialog } from './starting/starting.tsx'
import { tellUsage } from './usage.ts'

type HeaderProps = {
  run: Run
  /** Missing where the workflow cannot be read. */
  teamId: string | undefined
  newest: number | undefined
  now: number
}

type Act = { label: string; role: Role; look?: 'primary' | 'danger'; start: () => void }

/** What an execution is, how it stands, and what can be done with it. */
export function RunHeader({ run, teamId, newest, now }: HeaderProps) {
  const may = useRole(teamId)
  const confirm = useConfirm()
  const [asked, setAsked] = useState<'retry' | 'rerun' | 'input' | null>(null)
  const open = isOpen(run.status)
  const failed = run.status === 'FAILED' || run.status === 'CANCELLED'
  // Outputs given by hand, and nodes executed alone, are a BUILDER's.
  const given = run.onlyNode !== null || run.nodeExecutions.some(({ pinned }) => pinned)
  const least = given ? 'BUILDER' : 'OPERATOR'
  const acts = useMemo(() => {
    const cancel = () =>
      confirm({
        title: 'Cancel this execution?',
        text: 'Nodes that are running are told to stop. What they have done already is not undone.',
        label: 'Cancel execution',
        danger: true,
        work: async () => {
          await cancelExecution(run.id)
          notify('The execution is being cancelled')
        },
      })
    const all: (Act | false)[] = [
      open && { label: 'Cancel execution', role: 'OPERATOR', look: 'danger', start: cancel },
      failed && {
        label: 'Retry from failed nodes',
        role: least,
        look: 'primary',
        start: () => setAsked('retry'),
      },
      !open && { label: 'Execute again', role: least, start: () => setAsked('rerun') },
      !run.hidden &&
        run.onlyNode === null && {
          label: 'Execute with this input',
          role: 'OPERATOR',
          start: () => setAsked('input'),
        },
    ]
    return all.filter((one): one is Act => one !== false && teamId !== undefined && may(one.role))
  }, [confirm, run.id, run.hidden, run.onlyNode, open, failed, least, may, teamId])
  useCommands(useMemo(() => acts.map(({ label, start }) => ({ id: label, label, run: start })), [acts]))
  const remove = () =>
    confirm({
      title: 'Delete this execution?',
      text: 'Its input, outputs, records and files go, and its history in Temporal. It cannot be undone.',
      label: 'Delete execution',
      danger: true,
      work: async () => {
        await deleteExecution(run.id)
        go('/executions', { replace: true })
        notify('The execution is deleted')
      },
    })
  const save = () => {
    const { records, cancelRequested, ...document } = run
    saveText(`execution-${run.id}.json`, JSON.stringify(document, null, 2))
  }
  const began = run.startedAt ?? run.createdAt
  const length = open ? now - Date.parse(began) : run.durationMs
  const plain = acts.filter(({ look }) => !look)
  // While it goes on, what starts another one stands back.
  const beside = open ? [] : plain.slice(0, 1)
  const inMenu = open ? plain : plain.slice(1)
  return (
    <>
      <PageHeader
        title={run.workflowName}
        crumbs={[['Executions', '/executions']]}
        beside={
          <>
            <StatusBadge status={run.status} />
            {open && run.cancelRequested && <Pill tone="warn">Is being cancelled</Pill>}
          </>
        }
      >
        {acts
          .filter(({ look }) => look)
          .map(({ label, look, start }) => (
            <Button key={label} onClick={start} {...(look ? { look } : {})}>
              {label}
            </Button>
          ))}
        {beside.map(({ label, start }) => (
          <Button key={label} icon="refresh" onClick={start}>
            {label}
          </Button>
        ))}
        <Menu
          trigger={<Button icon="more" aria-label="More" />}
          items={[
            ...inMenu.map(({ label, start }) => ({ label, icon: 'play' as const, onClick: start })),
            { label: 'Save as JSON', icon: 'download', onClick: save },
            { label: "Copy the execution's id", icon: 'copy', onClick: () => void copyText(run.id) },
            { label: 'Open the workflow', icon: 'workflows', href: `/workflows/${run.workflowId}` },
            ...(!open && may('BUILDER')
              ? [
                  'line' as const,
                  { label: 'Delete execution', icon: 'trash' as const, danger: true, onClick: remove },
                ]
              : []),
          ]}
        />
      </PageHeader>
      {/* What changes is said to screen readers without the rest. */}
      <span className="hidden" role="status">
        {run.status}
      </span>
      <Facts
        facts={[
          ['Trigger', nameConstant(run.trigger)],
          ['Started', run.startedAt ? <Time key="s" at={run.startedAt} /> : 'Not yet'],
          ['Ended', run.completedAt && <Time key="e" at={run.completedAt} />],
          ['Duration', formatDuration(length)],
          [
            'Version',
            newest !== undefined && newest !== run.workflowVersion
              ? `${run.workflowVersion}, of ${newest}`
              : run.workflowVersion,
          ],
          ['Models', run.usage && tellUsage(run.usage)],
          ['Waits', run.status === 'PENDING' && run.queuedAt && 'for a place at its limit'],
          ['Only node', run.onlyNode && <code key="o">{run.onlyNode}</code>],
          [
            run.recovery === 'RERUN' ? 'Again from' : 'Retry of',
            run.retriedFrom && <ExecutionLink key="r" id={run.retriedFrom} />,
          ],
          ['Taken up by', run.retries.length > 0 && <Links key="t" ids={run.retries} />],
          [
            'Started by',
            run.parentExecutionId ? (
              <span key="p">
                <ExecutionLink id={run.parentExecutionId} />
                {run.parentNodeId && ` at ${run.parentNodeId}`}
              </span>
            ) : (
              tellStarter(run.startedBy, run.trigger)
            ),
          ],
          ['Callback', run.callback && tellCallback(run.callback)],
          [
            'Temporal',
            run.temporal && (
              <span key="temporal" className="row">
                <a href={run.temporal.url} target="_blank" rel="noreferrer">
                  History
                </a>
                <a href={run.temporal.runsUrl} target="_blank" rel="noreferrer">
                  All runs
                </a>
              </span>
            ),
          ],
          [
            'Id',
            <span key="id" className="id row" title={run.id}>
              {run.id.slice(-12)}
              <CopyButton text={run.id} label="Copy the id, which is the workflow id in Temporal too" />
            </span>,
          ],
        ]}
      />
      {run.errorMessage && (
        <p className="refusal said" role="alert">
          {run.errorMessage}
        </p>
      )}
      {newest !== undefined && newest !== run.workflowVersion && (
        <p className="hint">
          This execution follows version {run.workflowVersion}, drawn below; the{' '}
          <Link href={`/workflows/${run.workflowId}`}>workflow</Link> is at version {newest} now.
        </p>
      )}
      {(asked === 'retry' || asked === 'rerun') && (
        <RecoverDialog run={run} how={asked} newest={newest} onClose={() => setAsked(null)} />
      )}
      {asked === 'input' && teamId && (
        <InputDialog run={run} teamId={teamId} newest={newest} onClose={() => setAsked(null)} />
      )}
    </>
  )
}

function Links({ ids }: { ids: readonly string[] }) {
  return (
    <span className="row">
      {ids.slice(0, 5).map((id) => (
        <ExecutionLink key={id} id={id} />
      ))}
      {ids.length > 5 && <span className="quiet">{ids.length - 5} more</span>}
    </span>
  )
}

/** Whom the service calls at the end, and whether it has. */
function tellCallback({ url, status, attempts, lastError }: NonNullable<Run['callback']>): string {
  const tried = attempts > 1 ? ` (${attempts} attempts)` : ''
  return `${status.toLowerCase()}${tried}: ${url}${lastError ? `, ${lastError}` : ''}`
}
