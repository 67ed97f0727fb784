import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import { go, linkWith, readPage, useQueryState } from '../kit/address.ts'
import { ChooseAll, ChooseOne } from '../kit/choose.tsx'
import { LinkButton } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select, TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { useSearch } from '../kit/search.ts'
import { Empty, Loaded, Rows } from '../kit/states.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { type Command, useCommands } from '../shell/commands.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { ActiveSwitch } from './active.tsx'
import { WorkflowBulk } from './bulk.tsx'
import { useWorkflows, type WorkflowItem } from './data.ts'
import { NextRun } from './schedules.tsx'
import './workflows.css'

/** The team's workflows; the search follows the typing, and what is chosen can be changed at once. */
export function WorkflowsPage() {
  const { teamId } = useTeam()
  const may = useRole()
  const [query, setQuery, linkTo] = useQueryState({ search: '', active: '', page: '' })
  const search = useSearch(query.search, (next) => setQuery({ search: next }, { replace: true }))
  const { active } = query
  const found = useWorkflows(teamId, {
    search: query.search,
    ...(active === 'true' || active === 'false' ? { active } : {}),
    page: readPage(query.page),
  })
  const builds = may('BUILDER')
  useCommands(
    useMemo((): Command[] => {
      if (!builds) return []
      return [
        { id: 'new', label: 'New workflow', icon: 'plus', run: () => go('/start') },
        { id: 'import', label: 'Import a workflow', icon: 'upload', run: () => go('/workflows/import') },
      ]
    }, [builds]),
  )
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const rows = found.data?.content ?? []
  const stale = found.isPlaceholderData || search.isAhead
  const picked = stale ? [] : rows.filter(({ id }) => chosen.has(id))
  return (
    <>
      <PageHeader title="Workflows">
        {builds && (
          <>
            <LinkButton href="/workflows/import" icon="upload">
              Import
            </LinkButton>
            <LinkButton href="/start" look="primary" icon="plus">
              New workflow
            </LinkButton>
          </>
        )}
      </PageHeader>
      <div className="filters">
        <Field label="Search" hideLabel>
          <TextInput
            type="search"
            placeholder="Search by name"
            maxLength={200}
            value={search.text}
            onChange={search.follow}
          />
        </Field>
        <Field label="State" hideLabel>
          <Select
            value={active}
            onChange={(next) => setQuery({ active: next })}
            empty="Any state"
            choices={[
              { value: 'true', label: 'Active' },
              { value: 'false', label: 'Inactive' },
            ]}
          />
        </Field>
        {picked.length > 0 && <WorkflowBulk chosen={picked} onDone={() => setChosen(new Set())} />}
      </div>
      <Loaded query={found}>
        {(list) =>
          list.totalElements > 0 ? (
            <>
              <Rows stale={stale}>
                <WorkflowTable rows={list.content} chosen={chosen} onChoose={setChosen} />
              </Rows>
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          ) : query.search || active ? (
            <Empty title="Nothing found" text="No workflow fits this search." />
          ) : (
            <Empty
              title="No workflows yet"
              text="A workflow is a graph of nodes, executed from its trigger on."
            >
              {builds && (
                <LinkButton href="/start" look="primary">
                  Begin with a template
                </LinkButton>
              )}
            </Empty>
          )
        }
      </Loaded>
    </>
  )
}

type TableProps = {
  rows: readonly WorkflowItem[]
  chosen: ReadonlySet<string>
  onChoose: (chosen: ReadonlySet<string>) => void
}

function WorkflowTable({ rows, chosen, onChoose }: TableProps) {
  const builds = useRole()('BUILDER')
  const choice = { chosen, onChoose }
  return (
    <>
      {builds && <ChooseAll ids={rows.map(({ id }) => id)} {...choice} />}
      <Table
        label="Workflows"
        rows={rows}
        keyOf={({ id }) => id}
        onOpen={({ id }) => go(`/workflows/${id}`)}
        columns={[
          {
            heading: 'Name',
            cell: ({ id, name, description }) => (
              <div className="workflow-name">
                {builds && <ChooseOne id={id} name={name} {...choice} />}
                <div>
                  <Link className="name" href={`/workflows/${id}`}>
                    {name}
                  </Link>
                  {description && (
                    <div className="quiet line" title={description}>
                      {description}
                    </div>
                  )}
                </div>
              </div>
            ),
          },
          { heading: 'State', cell: (workflow) => <ActiveSwitch workflow={workflow} /> },
          { heading: 'Nodes', number: true, cell: ({ nodeCount }) => nodeCount },
          {
            heading: 'Last execution',
            cell: ({ id, lastExecutionStatus, lastExecutionAt }) => (
              <div className="row">
                <Link href={linkWith('/executions', { workflowId: id })}>
                  <StatusBadge status={lastExecutionStatus} />
                </Link>
                {lastExecutionAt && (
                  <span className="quiet">
                    <Age at={lastExecutionAt} />
                  </span>
                )}
              </div>
            ),
          },
          { heading: 'Next execution', cell: ({ id, active }) => <NextRun id={id} active={active} /> },
          { heading: 'Changed', cell: ({ updatedAt }) => <Age at={updatedAt} /> },
        ]}
      />
    </>
  )
}
