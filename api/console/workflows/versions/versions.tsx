import { useState } from 'react'
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
import { deleteVersion, useVersion, useVersions, type VersionItem } from './data.ts'
import { Difference } from './diff.tsx'
import { PublishDialog } from './publishing.tsx'
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
  const [publishing, setPublishing] = useState<number | null>(null)
  const chosen = readPage(query.version) || workflow.version
  const from = readPage(query.from)
  const found = useVersions(id, readPage(query.page))
  const version = useVersion(id, chosen)
  const remove = useRemoval(id)
  const isLive = chosen === workflow.version
  const highest = Math.max(workflow.version, workflow.draftVersion ?? 0, found.data?.content[0]?.version ?? 0)
  const choices = Array.from({ length: Math.min(highest, 500) }, (_, at) => {
    const one = highest - at
    return {
      value: String(one),
      label: [`Version ${one}`, nameVersion(workflow, one)].filter(Boolean).join(', '),
    }
  })
  const standing = nameVersion(workflow, chosen)
  const title = from
    ? `Version ${from} to ${chosen}`
    : [`Version ${chosen}`, standing].filter(Boolean).join(', ')
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
        {builds && !isLive && (
          <Button icon="undo" onClick={() => setPublishing(chosen)}>
            Publish
          </Button>
        )}
      </PageHeader>
      {highest > 1 && (
        <div className="filters">
          <Field label="Compare with">
            <Select
              value={from ? String(from) : ''}
              onChange={(other) => setQuery({ from: other, ...keep })}
              empty="Nothing"
              choices={choices.filter(({ value }) => value !== String(chosen))}
            />
          </Field>
          <Field label="Version">
            <Select
              value={String(chosen)}
              onChange={(other) =>
                setQuery({ version: other, ...(Number(other) === from ? { from: '' } : {}), ...keep })
              }
              choices={choices}
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
                workflow={workflow}
                linkTo={(change) => linkTo({ ...change, ...keep })}
                builds={builds}
                onPublish={setPublishing}
                onRemove={remove}
              />
              <Pager page={list} linkTo={(page) => linkTo({ page })} />
            </>
          )}
        </Loaded>
      </section>
      {publishing !== null && (
        <PublishDialog
          id={id}
          name={name}
          version={publishing}
          onClose={() => setPublishing(null)}
          onPublished={() => go(`/workflows/${id}/versions`)}
        />
      )}
    </>
  )
}

/** What a version is by now: empty for one that is neither published nor the draft. */
function nameVersion({ version, draftVersion, active }: Workflow, one: number): string {
  if (one === version) return active ? 'live' : 'published'
  return one === draftVersion ? 'the draft' : ''
}

function useRemoval(id: string) {
  const confirm = useConfirm()
  return (version: number) =>
    confirm({
      title: `Delete version ${version}?`,
      text: 'Its graph cannot be published again after that.',
      label: 'Delete',
      danger: true,
      work: async () => {
        await deleteVersion(id, version)
        notify(`Version ${version} deleted`)
        go(`/workflows/${id}/versions`)
      },
    })
}

type TableProps = {
  rows: readonly VersionItem[]
  workflow: Workflow
  chosen: number
  linkTo: (change: { version: number | string; from: number | string }) => string
  builds: boolean
  onPublish: (version: number) => void
  onRemove: (version: number) => void
}

/** The version that one is compared with: what was published before it, or the last draft before a draft. */
function findBefore(rows: readonly VersionItem[], { version, published }: VersionItem): number {
  const before = rows.filter((one) => one.version < version)
  return (before.find((one) => one.published || !published) ?? { version: version - 1 }).version
}

function VersionTable({ rows, workflow, chosen, linkTo, builds, onPublish, onRemove }: TableProps) {
  return (
    <Table
      label="Versions"
      rows={rows}
      keyOf={({ version }) => String(version)}
      onOpen={({ version }) => go(linkTo({ version, from: '' }))}
      columns={[
        {
          heading: 'Version',
          cell: ({ version, current, draft, restoredFrom }) => (
            <span className="row">
              <Link
                className="name"
                href={linkTo({ version, from: '' })}
                aria-current={version === chosen ? 'page' : undefined}
              >
                Version {version}
              </Link>
              {current && (
                <Pill tone={workflow.active ? 'good' : undefined}>
                  {workflow.active ? 'live' : 'published'}
                </Pill>
              )}
              {draft && <Pill tone="warn">draft</Pill>}
              {restoredFrom !== null && <span className="quiet">as {restoredFrom} was</span>}
            </span>
          ),
        },
        {
          heading: 'Made',
          cell: ({ createdAt, createdBy }) => (
            <>
              <Time at={createdAt} />
              {createdBy && <div className="quiet">{createdBy.name}</div>}
            </>
          ),
        },
        {
          heading: 'Published',
          cell: (one) => <Publication {...one} />,
        },
        { heading: 'Nodes', number: true, cell: ({ nodeCount }) => nodeCount },
        { heading: 'Executions', cell: ({ inUse }) => (inUse ? 'yes' : 'none') },
        {
          heading: 'Compare',
          cell: (one) =>
            one.version > 1 ? (
              <Link
                className="linked"
                href={linkTo({
                  version: one.version,
                  from: one.draft ? workflow.version : findBefore(rows, one),
                })}
              >
                {one.draft ? 'with what is published' : 'what it changed'}
              </Link>
            ) : (
              <span className="quiet">the first one</span>
            ),
        },
        builds && {
          heading: 'Do',
          cell: ({ version, current, draft, inUse }) =>
            current ? null : (
              <span className="row">
                <Button small aria-label={`Publish version ${version}`} onClick={() => onPublish(version)}>
                  Publish
                </Button>
                {!inUse && !draft && (
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

/** When a version was published, by whom, and what was said of it. */
function Publication({ published, publishedAt, publishedBy, note }: VersionItem) {
  if (!published) return <span className="quiet">never</span>
  return (
    <>
      {publishedAt ? <Time at={publishedAt} /> : 'yes'}
      {publishedBy && <div className="quiet">{publishedBy.name}</div>}
      {note && (
        <div className="quiet line" title={note}>
          {note}
        </div>
      )}
    </>
  )
}
