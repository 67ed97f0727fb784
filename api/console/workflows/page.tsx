import { useMemo, useState } from 'react'
import { Link, useParams } from 'wouter'
import { useExecutions } from '../executions/data.ts'
import { ExecutionTable } from '../executions/list.tsx'
import { ExecuteDialog } from '../executions/starts/execute.tsx'
import { Graph } from '../graph/graph.tsx'
import { go, linkWith } from '../kit/address.ts'
import { Button, LinkButton } from '../kit/controls/button.tsx'
import { Facts, PageHeader } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Menu } from '../kit/overlays/menu.tsx'
import { Empty, Loaded, Refused } from '../kit/states.tsx'
import { Age, formatDuration } from '../kit/time.tsx'
import { type Command, useCommands } from '../shell/commands.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { ActiveSwitch } from './active.tsx'
import { Addresses } from './addresses.tsx'
import { deleteWorkflow, useWorkflow, type Workflow } from './data.ts'
import { Schedules } from './schedules.tsx'
import { SettingsDialog } from './settings.tsx'
import { useImportReport } from './transfer/data.ts'
import { ExportButton } from './transfer/exporting.tsx'
import { Report, useReportMarks } from './transfer/report.tsx'
import { PublishDialog } from './versions/publishing.tsx'
import './workflows.css'

/** One workflow: its graph, how it is started, what it did last, and what can be done with it. */
export function WorkflowPage() {
  const { id = '' } = useParams()
  const found = useWorkflow(id)
  return <Loaded query={found}>{(workflow) => <OneWorkflow key={workflow.id} workflow={workflow} />}</Loaded>
}

type Shown = 'execute' | 'settings' | 'publish'

function OneWorkflow({ workflow }: { workflow: Workflow }) {
  const { id, name, teamId, description, nodes } = workflow
  const may = useRole(teamId)
  const [dialog, setDialog] = useState<Shown | null>(null)
  const [refused, setRefused] = useState<unknown>(null)
  const remove = useRemoval(workflow)
  const close = () => setDialog(null)
  const [builds, operates] = [may('BUILDER'), may('OPERATOR')]
  usePageCommands(id, { builds, operates }, setDialog)
  const scheduled = nodes.some((node) => node.type === 'SCHEDULE_TRIGGER' && !node.disabled)
  return (
    <>
      <PageHeader
        title={name}
        crumbs={[['Workflows', '/workflows']]}
        {...(description ? { lead: description } : {})}
        beside={<ActiveSwitch workflow={workflow} onError={setRefused} />}
      >
        <ExportButton workflow={workflow} />
        {builds && (
          <>
            <Button icon="settings" onClick={() => setDialog('settings')}>
              Settings
            </Button>
            <LinkButton href={`/workflows/${id}/edit`} icon="edit">
              Edit
            </LinkButton>
          </>
        )}
        {operates && (
          <Button look="primary" icon="play" onClick={() => setDialog('execute')}>
            Execute
          </Button>
        )}
        {builds && (
          <Menu
            trigger={<Button icon="more" aria-label="More" />}
            items={[
              { label: 'Versions', icon: 'redo', href: `/workflows/${id}/versions` },
              {
                label: 'Executions',
                icon: 'executions',
                href: linkWith('/executions', { workflowId: id }),
              },
              'line',
              { label: 'Delete workflow', icon: 'trash', danger: true, onClick: remove },
            ]}
          />
        )}
      </PageHeader>
      <Refused error={refused} />
      <WorkflowFacts workflow={workflow} />
      {workflow.draftVersion !== null && (
        <p className="hint row">
          <span>
            Version {workflow.version} is {workflow.active ? 'live' : 'published'}. There is a draft that is
            not: version {workflow.draftVersion}.
          </span>
          {builds && (
            <Button small onClick={() => setDialog('publish')}>
              Publish the draft
            </Button>
          )}
        </p>
      )}
      <Drawn workflow={workflow} edit={builds ? `/workflows/${id}/edit` : null} />
      <Addresses workflow={workflow} />
      {scheduled && (
        <section className="workflow-part">
          <h2>Schedules</h2>
          <Schedules id={id} />
        </section>
      )}
      <Latest id={id} />
      {operates && dialog === 'execute' && (
        <ExecuteDialog
          onClose={close}
          id={id}
          teamId={workflow.teamId}
          name={workflow.name}
          nodes={workflow.nodes}
        />
      )}
      {builds && dialog === 'publish' && (
        <PublishDialog id={id} name={name} onClose={close} onPublished={() => {}} />
      )}
      {builds && dialog === 'settings' && <SettingsDialog open onClose={close} workflow={workflow} />}
    </>
  )
}

type Rights = { builds: boolean; operates: boolean }

/** What the command palette offers on this page. */
function usePageCommands(id: string, { builds, operates }: Rights, show: (dialog: Shown) => void) {
  useCommands(
    useMemo((): Command[] => {
      const at = `/workflows/${id}`
      return [
        ...(operates
          ? [{ id: 'execute', label: 'Execute it', icon: 'play' as const, run: () => show('execute') }]
          : []),
        ...(builds
          ? [
              { id: 'edit', label: 'Edit it', icon: 'edit' as const, run: () => go(`${at}/edit`) },
              {
                id: 'settings',
                label: 'Its settings',
                icon: 'settings' as const,
                run: () => show('settings'),
              },
            ]
          : []),
        { id: 'versions', label: 'Its versions', icon: 'redo', run: () => go(`${at}/versions`) },
      ]
    }, [id, builds, operates, show]),
  )
}

function WorkflowFacts({ workflow }: { workflow: Workflow }) {
  const { id, nodes, settings, version } = workflow
  return (
    <Facts
      facts={[
        [
          'Version',
          <Link key="v" className="linked" href={`/workflows/${id}/versions`}>{`${version}, see all`}</Link>,
        ],
        ['Nodes', nodes.length],
        ['Time limit', settings.timeoutMs === null ? 'none' : formatDuration(settings.timeoutMs)],
        [
          'At once',
          settings.concurrency ? `${settings.concurrency.limit}, else ${settings.concurrency.policy}` : false,
        ],
        ['Time zone', settings.timezone],
        ['Created', <Age key="c" at={workflow.createdAt} />],
        ['Changed', <Age key="u" at={workflow.updatedAt} />],
      ]}
    />
  )
}

function useRemoval({ id, name }: Workflow) {
  const confirm = useConfirm()
  return () =>
    confirm({
      title: 'Delete this workflow?',
      text: (
        <>
          This deletes <strong>{name}</strong> and the history of all its executions. It ends the running
          ones. It cannot be undone.
        </>
      ),
      label: 'Delete',
      danger: true,
      work: async () => {
        await deleteWorkflow(id)
        notify('Workflow deleted')
        go('/workflows')
      },
    })
}

/** The graph; of a workflow that was imported also what that left to do, marked on it. */
function Drawn({ workflow, edit }: { workflow: Workflow; edit: string | null }) {
  const { data } = useImportReport(workflow.id)
  const [open, setOpen] = useState(false)
  const marks = useReportMarks(data)
  const { totals } = data ?? {}
  return (
    <>
      {data && totals && data.problems.length > 0 && (
        <div className="hint row">
          <span>
            Imported: {totals.works} of {totals.nodes} nodes work as they did, {totals.noted} with a note,{' '}
            {totals.stopped} to be replaced.
          </span>
          <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'Hide what to do' : 'What to do'}
          </Button>
        </div>
      )}
      <Graph
        graph={{ ...workflow, notes: workflow.settings.notes }}
        label={`Graph of ${workflow.name}`}
        edit={edit}
        {...(open ? { marks } : {})}
      />
      {open && data && <Report report={data} />}
    </>
  )
}

function Latest({ id }: { id: string }) {
  const { teamId } = useTeam()
  const runs = useExecutions(teamId, { workflowId: id, size: 5 })
  return (
    <section className="workflow-part">
      <div className="part-head">
        <h2>Latest executions</h2>
        <Link className="linked" href={linkWith('/executions', { workflowId: id })}>
          All executions
        </Link>
      </div>
      <Loaded query={runs} rows={2}>
        {({ content }) =>
          content.length === 0 ? (
            <Empty title="No executions yet" text="Execute starts one." />
          ) : (
            <ExecutionTable rows={content} />
          )
        }
      </Loaded>
    </section>
  )
}
