import { Link } from 'wouter'
import { readPage, useQueryState } from '../../kit/address.ts'
import { Field } from '../../kit/controls/field.tsx'
import { Select } from '../../kit/controls/input.tsx'
import { PageHeader } from '../../kit/header.tsx'
import { Empty, Loaded } from '../../kit/states.tsx'
import { Pill, type Tone } from '../../kit/status.tsx'
import { Pager } from '../../kit/tables/pager.tsx'
import { Table } from '../../kit/tables/table.tsx'
import { Age, Time } from '../../kit/time.tsx'
import { useTeam } from '../../shell/role.tsx'
import { ExecutionLink } from '../list.tsx'
import { APPROVAL_STATUSES, type Approval, type ApprovalStatus, useApprovals } from './data.ts'
import { Decide, nameApproval, useDecide } from './decide.tsx'

const TONES: Partial<Record<ApprovalStatus, Tone>> = { APPROVED: 'good', REJECTED: 'bad' }
const WORDS: Record<ApprovalStatus, string> = {
  OPEN: 'Open',
  APPROVED: 'Approved',
  REJECTED: 'Rejected',
  EXPIRED: 'Expired',
  ABANDONED: 'Abandoned',
}

/** What the team's executions wait for people to decide, and what was decided. */
export function ApprovalsPage() {
  const { teamId } = useTeam()
  const [query, setQuery, linkTo] = useQueryState({ status: 'OPEN', page: '' })
  const status = APPROVAL_STATUSES.find((one) => one === query.status) ?? 'OPEN'
  const found = useApprovals(teamId, { status, page: readPage(query.page) })
  const { onDecide, dialog } = useDecide()
  return (
    <>
      <PageHeader title="Approvals" />
      <div className="filters">
        <Field label="Status">
          <Select
            value={status}
            onChange={(next) => setQuery({ status: next })}
            choices={APPROVAL_STATUSES.map((value) => ({ value, label: WORDS[value] }))}
          />
        </Field>
      </div>
      <Loaded query={found} rows={3}>
        {(list) =>
          list.totalElements > 0 ? (
            <>
              <ApprovalTable rows={list.content} open={status === 'OPEN'} onDecide={onDecide} />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          ) : status === 'OPEN' ? (
            <Empty title="Nothing to decide" text="An execution that reaches an APPROVAL node waits here." />
          ) : (
            <Empty title="Nothing found" text="No approval has this status." />
          )
        }
      </Loaded>
      {dialog}
    </>
  )
}

type TableProps = {
  rows: readonly Approval[]
  open: boolean
  onDecide: ReturnType<typeof useDecide>['onDecide']
}

function ApprovalTable({ rows, open, onDecide }: TableProps) {
  return (
    <Table
      label="Approvals"
      rows={rows}
      keyOf={({ id }) => id}
      columns={[
        { heading: 'Request', cell: (approval) => <Request approval={approval} /> },
        {
          heading: 'Workflow',
          cell: ({ workflowId, workflowName }) => (
            <Link href={`/workflows/${workflowId}`}>{workflowName}</Link>
          ),
        },
        { heading: 'Execution', cell: ({ executionId }) => <ExecutionLink id={executionId} /> },
        { heading: 'Since', cell: ({ createdAt }) => <Age at={createdAt} /> },
        { heading: 'Deadline', cell: ({ deadline }) => <Time at={deadline} /> },
        open
          ? { heading: 'Decide', cell: (approval) => <Decide approval={approval} onDecide={onDecide} /> }
          : { heading: 'Decision', cell: (approval) => <Decision approval={approval} /> },
      ]}
    />
  )
}

function Request({ approval }: { approval: Approval }) {
  return (
    <>
      <div className="name said">{approval.message ?? nameApproval(approval)}</div>
      {approval.message && <div className="quiet">{nameApproval(approval)}</div>}
    </>
  )
}

function Decision({ approval: { status, settledAt, decisions } }: { approval: Approval }) {
  return (
    <>
      <Pill tone={TONES[status] ?? 'warn'}>{WORDS[status]}</Pill> <Age at={settledAt} />
      {decisions.map(({ by, decision, comment, at }) => (
        <div key={`${by.id} ${at}`} className="quiet">
          {`${by.name}: ${decision}${comment ? `, “${comment}”` : ''}`}
        </div>
      ))}
    </>
  )
}
