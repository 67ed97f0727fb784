import { useMemo } from 'react'
import { Link } from 'wouter'
import { Button } from '../../kit/controls/button.tsx'
import { copyText } from '../../kit/controls/copy.tsx'
import { PageHeader } from '../../kit/header.tsx'
import { Menu } from '../../kit/overlays/menu.tsx'
import { isOpen, Pill, StatusBadge } from '../../kit/status.tsx'
import { useCommands } from '../../shell/commands.tsx'
import { useRole } from '../../shell/role.tsx'
import { TestPill } from '../list.tsx'
import type { Run } from '../live.ts'
import { InputDialog, RecoverDialog } from '../starts/starting.tsx'
import { saveRun, useActs, useRemoval } from './acts.ts'
import { RunFacts } from './facts.tsx'

type HeaderProps = {
  run: Run
  /** Missing where the workflow cannot be read. */
  teamId: string | undefined
  newest: number | undefined
  now: number
}

/** The head of an execution: its workflow, its state, and the acts on it. */
export function RunHeader({ run, teamId, newest, now }: HeaderProps) {
  const may = useRole(teamId)
  const { acts, asked, close } = useActs(run, teamId)
  const remove = useRemoval(run)
  const open = isOpen(run.status)
  useCommands(useMemo(() => acts.map(({ label, start }) => ({ id: label, label, run: start })), [acts]))
  const plain = acts.filter(({ look }) => !look)
  // While it goes on, the acts that start another one are in the menu.
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
            {run.draft && <TestPill />}
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
            { label: 'Save as JSON', icon: 'download', onClick: () => saveRun(run) },
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
      <RunFacts run={run} newest={newest} now={now} />
      {run.errorMessage && (
        <p className="refusal said" role="alert">
          {run.errorMessage}
        </p>
      )}
      <VersionHint run={run} newest={newest} />
      {(asked === 'retry' || asked === 'rerun') && (
        <RecoverDialog run={run} how={asked} newest={newest} onClose={close} />
      )}
      {asked === 'input' && teamId && <InputDialog run={run} teamId={teamId} onClose={close} />}
    </>
  )
}

/** Says where the graph that the execution follows is not what is published now. */
function VersionHint({
  run: { workflowId, workflowVersion, draft },
  newest,
}: Pick<HeaderProps, 'run' | 'newest'>) {
  if (newest === undefined || (newest === workflowVersion && !draft)) return null
  const workflow = <Link href={`/workflows/${workflowId}`}>workflow</Link>
  if (newest === workflowVersion)
    return <p className="hint">A test of version {workflowVersion} before it was published.</p>
  return (
    <p className="hint">
      {draft
        ? `A test: it tried version ${workflowVersion}, drawn below, which was not published;`
        : `This execution follows version ${workflowVersion}, drawn below;`}{' '}
      published in the {workflow} is version {newest}.
    </p>
  )
}
