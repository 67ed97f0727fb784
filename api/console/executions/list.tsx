import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import { type ExecutionItem, useExecutions } from '../data/executions.ts'
import { go, readPage, useQueryState } from '../kit/address.ts'
import { LinkButton } from '../kit/button.tsx'
import { Field } from '../kit/field.tsx'
import { PageHeader } from '../kit/header.tsx'
import { DateInput, Select, TextInput } from '../kit/input.tsx'
import { Pager } from '../kit/pager.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant, nameStatus, STATUSES, StatusBadge } from '../kit/status.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { formatDuration, Time } from '../kit/time.tsx'
import { useCommands } from '../shell/commands.tsx'
import { useTeam } from '../shell/role.tsx'
import { WorkflowChoice } from '../workflows/choice.tsx'

const FILTERS = { status: '', workflowId: '', from: '', to: '', page: '' }

/** The team's executions: filters and the page stand in the address; the first page keeps itself fresh. */
export function ExecutionsPage() {
  const { teamId } = useTeam()
  const [query, setQuery, linkTo] = useQueryState(FILTERS)
  const { page, ...filters } = query
  const found = useExecutions(teamId, { ...filters, page: readPage(page) })
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
        <Field label="Id">
          <IdInput />
        </Field>
        <Field label="From">
          <DateInput value={query.from} onChange={(from) => setQuery({ from })} />
        </Field>
        <Field label="Before">
          <DateInput value={query.to} onChange={(to) => setQuery({ to })} />
        </Field>
        {filtered && <LinkButton href="/executions">Clear</LinkButton>}
      </div>
      <Loaded query={found}>
        {(list) =>
          list.totalElements > 0 ? (
            <>
              <ExecutionTable rows={list.content} named />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
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

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Opens the execution whose whole id is typed or pasted. */
function IdInput() {
  const [text, setText] = useState('')
  const follow = (next: string) => {
    setText(next)
    if (ID.test(next.trim())) go(`/executions/${next.trim().toLowerCase()}`)
  }
  return <TextInput value={text} maxLength={60} placeholder="Paste it to open it" onChange={follow} />
}

const COLUMNS: Column<ExecutionItem>[] = [
  { heading: 'Trigger', cell: ({ triggerType }) => nameConstant(triggerType) },
  { heading: 'Started', cell: ({ startedAt }) => <Time at={startedAt} /> },
  { heading: 'Duration', cell: ({ durationMs }) => formatDuration(durationMs) },
]

/** The rows of a list of executions; `named` is whether each says its workflow. */
export function ExecutionTable({ rows, named }: { rows: readonly ExecutionItem[]; named?: boolean }) {
  return (
    <Table
      label="Executions"
      rows={rows}
      keyOf={({ id }) => id}
      onOpen={({ id }) => go(`/executions/${id}`)}
      columns={[
        { heading: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
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
