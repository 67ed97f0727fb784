import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import { go, readPage, useQueryState } from '../kit/address.ts'
import { ChooseAll, ChooseOne } from '../kit/choose.tsx'
import { LinkButton } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { DateInput, Select, TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { useSearch } from '../kit/search.ts'
import { Empty, Loaded, Rows } from '../kit/states.tsx'
import { nameConstant, nameStatus, Pill, STATUSES, StatusBadge } from '../kit/status.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { type Column, Table } from '../kit/tables/table.tsx'
import { formatDuration, Time } from '../kit/time.tsx'
import { useCommands } from '../shell/commands.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { WorkflowChoice } from '../workflows/choice.tsx'
import { ExecutionBulk } from './bulk.tsx'
import { type ExecutionItem, useExecutions } from './data.ts'
import { tellStarter } from './starter.tsx'

const FILTERS = { search: '', status: '', trigger: '', workflowId: '', from: '', to: '', page: '' }
const TRIGGERS = [
  'MANUAL',
  'API',
  'WEBHOOK',
  'FORM',
  'SCHEDULE',
  'CHAT',
  'MCP',
  'SUB_WORKFLOW',
  'ERROR',
  'EVALUATION',
  'PLAYBOOK',
]

/** The team's executions: filters and the page stand in the address; the first page keeps itself fresh. */
export function ExecutionsPage() {
  const { teamId } = useTeam()
  const [query, setQuery, linkTo] = useQueryState(FILTERS)
  const { page, ...filters } = query
  const search = useSearch(query.search, (next) => setQuery({ search: next }, { replace: true }))
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const found = useExecutions(teamId, { ...filters, page: readPage(page) })
  const stale = found.isPlaceholderData || search.isAhead
  const picked = stale ? [] : (found.data?.content ?? []).filter(({ id }) => chosen.has(id))
  const operates = useRole()('OPERATOR')
  const filtered = Object.values(filters).some(Boolean)
  useCommands(
    useMemo(
      () =>
        STATUSES.map((status) => ({
          id: `executions ${status}`,
          label: `Show executions: ${nameStatus(status)}`,
          icon: 'filter' as const,
          run: () => setQuery({ status }),
        })),
      [setQuery],
    ),
  )
  return (
    <>
      <PageHeader title="Executions" />
      <div className="filters">
        <Field label="Search">
          <TextInput
            type="search"
            className="wide"
            placeholder="Id, workflow, error or input"
            maxLength={200}
            value={search.text}
            onChange={search.follow}
          />
        </Field>
        <Field label="Status">
          <Select
            value={query.status}
            onChange={(status) => setQuery({ status })}
            empty="Any status"
            choices={STATUSES.map((value) => ({ value, label: nameStatus(value) }))}
          />
        </Field>
        <Field label="Workflow">
          <WorkflowChoice value={query.workflowId} onChange={(workflowId) => setQuery({ workflowId })} />
        </Field>
        <Field label="Trigger">
          <Select
            value={query.trigger}
            onChange={(trigger) => setQuery({ trigger })}
            empty="Any trigger"
            choices={TRIGGERS.map((value) => ({ value, label: nameConstant(value) }))}
          />
        </Field>
        <Field label="From">
          <DateInput value={query.from} onChange={(from) => setQuery({ from })} />
        </Field>
        <Field label="Before">
          <DateInput value={query.to} onChange={(to) => setQuery({ to })} />
        </Field>
        {filtered && <LinkButton href="/executions">Clear</LinkButton>}
        {picked.length > 0 && (
          <ExecutionBulk teamId={teamId} chosen={picked} onDone={() => setChosen(new Set())} />
        )}
      </div>
      <Loaded query={found}>
        {(list) =>
          list.totalElements > 0 ? (
            <>
              <Rows stale={stale}>
                <ExecutionTable
                  rows={list.content}
                  named
                  {...(operates ? { chosen, onChoose: setChosen } : {})}
                />
              </Rows>
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
              {list.searchedFrom && (
                <Older from={list.searchedFrom} href={linkTo({ to: list.searchedFrom })} />
              )}
            </>
          ) : list.searchedFrom ? (
            <Empty title="Nothing found yet" text="None of the executions that were looked at fits.">
              <Older from={list.searchedFrom} href={linkTo({ to: list.searchedFrom })} />
            </Empty>
          ) : filtered ? (
            <Empty title="Nothing found" text="No execution fits these filters." />
          ) : (
            <Empty title="No executions yet" text="Execute a workflow, or call its webhook." />
          )
        }
      </Loaded>
    </>
  )
}

/** A search looks back for about a second; this says how far it came, and goes on from there. */
function Older({ from, href }: { from: string; href: string }) {
  return (
    <p className="quiet row searched">
      <span>
        Looked back to <Time at={from} />.
      </span>
      <LinkButton small href={href}>
        Look further back
      </LinkButton>
    </p>
  )
}

const COLUMNS: Column<ExecutionItem>[] = [
  {
    heading: 'Started by',
    cell: ({ triggerType, startedBy }) => {
      const starter = tellStarter(startedBy, triggerType)
      return (
        <>
          {nameConstant(triggerType)}
          {starter && <div className="quiet starter">{starter}</div>}
        </>
      )
    },
  },
  { heading: 'Started', cell: ({ startedAt }) => <Time at={startedAt} /> },
  { heading: 'Duration', cell: ({ durationMs }) => formatDuration(durationMs) },
]

type Chosen = ReadonlySet<string>
type TableProps = {
  rows: readonly ExecutionItem[]
  /** Whether each says its workflow. */
  named?: boolean
  chosen?: Chosen
  /** With it the rows can be chosen. */
  onChoose?: (chosen: Chosen) => void
}

/** The rows of a list of executions. */
export function ExecutionTable({ rows, named, chosen = new Set(), onChoose }: TableProps) {
  const choice = onChoose && { chosen, onChoose }
  return (
    <>
      {choice && <ChooseAll ids={rows.map(({ id }) => id)} {...choice} />}
      <Table
        label="Executions"
        rows={rows}
        keyOf={({ id }) => id}
        onOpen={({ id }) => go(`/executions/${id}`)}
        columns={[
          {
            heading: 'Status',
            cell: ({ id, status, retriedBy, draft }) => (
              <>
                <div className="pick">
                  {choice && <ChooseOne id={id} name={id.slice(-12)} {...choice} />}
                  <StatusBadge status={status} />
                  {draft && <TestPill />}
                </div>
                {retriedBy && (
                  <Link className="quiet" href={`/executions/${retriedBy}`}>
                    Retried
                  </Link>
                )}
              </>
            ),
          },
          named && {
            heading: 'Workflow',
            cell: ({ workflowId, workflowName }) => (
              <Link className="name" href={`/workflows/${workflowId}`}>
                {workflowName}
              </Link>
            ),
          },
          {
            heading: 'Execution',
            cell: ({ id, errorMessage }) => (
              <>
                <ExecutionLink id={id} />
                {errorMessage && (
                  <div className="quiet line" title={errorMessage}>
                    {errorMessage}
                  </div>
                )}
              </>
            ),
          },
          ...COLUMNS,
        ]}
      />
    </>
  )
}

/** Marks an execution that tried a draft, or another version than the published one. */
export function TestPill() {
  return (
    <Pill title="It tried a version that was not the published one, such as a draft. It is no part of monitoring and evaluation.">
      Test
    </Pill>
  )
}

/** The way to an execution, by the end of its id. */
export function ExecutionLink({ id }: { id: string }) {
  return (
    <Link className="id" href={`/executions/${id}`} title={id}>
      {id.slice(-12)}
    </Link>
  )
}
