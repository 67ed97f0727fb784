import { Link, useParams } from 'wouter'
import { Graph } from '../../graph/graph.tsx'
import { go, readPage, useQueryState } from '../../kit/address.ts'
import { Button } from '../../kit/controls/button.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { Select } from '../../kit/controls/input.tsx'
import { PageHeader } from '../../kit/header.tsx'
import { notify } from '../../kit/notices.tsx'
import { useConfirm } from '../../kit/overlays/confirm.tsx'
import { Loaded } from '../../kit/states.tsx'
import { Pill } from '../../kit/status.tsx'
import { Pager } from '../../kit/tables/pager.tsx'
import { Table } from '../../kit/tables/table.tsx'
import { Time } from '../../kit/time.tsx'
import { useRole } from '../../shell/role.tsx'
import { useWorkflow, type Workflow } from '../data.ts'
import { deleteVersion, restoreVersion, useVersion, useVersions, type VersionItem } from './data.ts'
import { Difference } from './diff.tsx'
import '../workflows.css'

/** The versions of a workflow's graph: one of them drawn, or what changed between two. */
export function VersionsPage() {
  const { id = '' } = useParams()
  const found = useWorkflow(id)
  return <Loaded query={found}>{(workflow) => <Shown workflow={workflow} />}</Loaded>
}

function Shown({ workflow }: { workflow: Workflow }) {
  const { id, name, teamId } = workflow
  const builds = useRole(teamId)('BUILDER')
  const [query, setQuery, linkTo] = useQueryState({ version: '', from: '', page: '' })
  const chosen = readPage(query.version) || workflow.version
  const from = readPage(query.from)
  const found = useVersions(id, readPage(query.page))
  const version = useVersion(id, chosen)
  const { restore, remove } = useActs(id)
  const current = chosen === workflow.version
  const others = Array.from({ length: workflow.version }, (_, at) => workflow.version - at)
  const title = from
    ? `Version ${from} to ${chosen}`
    : current
      ? `Version ${chosen}, the newest`
      : `Version ${chosen}`
  const keep = { page: query.page }
  return (
    <>
      <PageHeader
        title={title}
        crumbs={[
          ['Workflows', '/workflows'],
          [name, `/workflows/${id}`],
        ]}
      >
        {builds && !current && (
          <Button icon="undo" onClick={() => restore(chosen)}>
            Restore
          </Button>
        )}
      </PageHeader>
      {workflow.version > 1 && (
        <div className="filters">
          <Field label="Compare with">
            <Select
              value={from ? String(from) : ''}
              onChange={(other) => setQuery({ from: other, ...keep })}
              empty="Nothing"
              choices={others
                .filter((one) => one !== chosen)
                .slice(0, 500)
                .map((one) => ({ value: String(one), label: `Version ${one}` }))}
            />
          </Field>
          <Field label="Version">
            <Select
              value={String(chosen)}
              onChange={(other) =>
                setQuery({ version: other, ...(Number(other) === from ? { from: '' } : {}), ...keep })
              }
              choices={others.slice(0, 500).map((one) => ({ value: String(one), label: `Version ${one}` }))}
            />
          </Field>
        </div>
      )}
      <Loaded query={version}>
        {(shown) =>
          from ? (
            <Difference id={id} from={from} to={chosen} />
          ) : (
            <Graph graph={shown} label={`Graph of version ${chosen}`} />
          )
        }
      </Loaded>
      <section className="workflow-part">
        <h2>Versions</h2>
        <Loaded query={found} rows={3}>
          {(list) => (
            <>
              <VersionTable
                rows={list.content}
                chosen={chosen}
                linkTo={(change) => linkTo({ ...change, ...keep })}
                builds={builds}
                onRestore={restore}
                onRemove={remove}
              />
              <Pager page={list} linkTo={(page) => linkTo({ page })} />
            </>
          )}
        </Loaded>
      </section>
    </>
  )
}

function useActs(id: string) {
  const confirm = useConfirm()
  const restore = (version: number) =>
    confirm({
      title: `Restore version ${version}?`,
      text: 'Its graph becomes the newest version. Executions that are under way keep theirs.',
      label: 'Restore',
      work: async () => {
        const now = await restoreVersion(id, version)
        notify(`Version ${version} is version ${now.version} now`)
        go(`/workflows/${id}`)
      },
    })
  const remove = (version: number) =>
    confirm({
      title: `Delete version ${version}?`,
      text: 'Its graph cannot be restored after that.',
      label: 'Delete',
      danger: true,
      work: async () => {
        await deleteVersion(id, version)
        notify(`Version ${version} deleted`)
        go(`/workflows/${id}/versions`)
      },
    })
  return { restore, remove }
}

type TableProps = {
  rows: readonly VersionItem[]
  chosen: number
  linkTo: (change: { version: number | string; from: number | string }) => string
  builds: boolean
  onRestore: (version: number) => void
  onRemove: (version: number) => void
}

function VersionTable({ rows, chosen, linkTo, builds, onRestore, onRemove }: TableProps) {
  return (
    <Table
      label="Versions"
      rows={rows}
      keyOf={({ version }) => String(version)}
      onOpen={({ version }) => go(linkTo({ version, from: '' }))}
      columns={[
        {
          heading: 'Version',
          cell: ({ version, current }) => (
            <span className="row">
              <Link
                className="name"
                href={linkTo({ version, from: '' })}
                aria-current={version === chosen ? 'page' : undefined}
              >
                Version {version}
              </Link>
              {current && <Pill>newest</Pill>}
            </span>
          ),
        },
        { heading: 'Made', cell: ({ createdAt }) => <Time at={createdAt} /> },
        { heading: 'By', cell: ({ createdBy }) => createdBy?.name ?? <span className="quiet">–</span> },
        { heading: 'Nodes', number: true, cell: ({ nodeCount }) => nodeCount },
        { heading: 'Executions', cell: ({ inUse }) => (inUse ? 'yes' : 'none') },
        {
          heading: 'Restored from',
          cell: ({ restoredFrom }) => restoredFrom ?? <span className="quiet">–</span>,
        },
        {
          heading: 'Compare',
          cell: ({ version }) =>
            version > 1 ? (
              <Link className="linked" href={linkTo({ version, from: version - 1 })}>
                what it changed
              </Link>
            ) : (
              <span className="quiet">the first one</span>
            ),
        },
        builds && {
          heading: 'Do',
          cell: ({ version, current, inUse }) =>
            current ? null : (
              <span className="row">
                <Button small aria-label={`Restore version ${version}`} onClick={() => onRestore(version)}>
                  Restore
                </Button>
                {!inUse && (
                  <Button
                    small
                    look="plain"
                    icon="trash"
                    aria-label={`Delete version ${version}`}
                    onClick={() => onRemove(version)}
                  />
                )}
              </span>
            ),
        },
      ]}
    />
  )
}
