import { useState } from 'react'
import { go, readPage, useQueryState } from '../kit/address.ts'
import { JsonTree } from '../kit/code/jsontree.tsx'
import { Button } from '../kit/controls/button.tsx'
import { CopyButton } from '../kit/controls/copy.tsx'
import { Field } from '../kit/controls/field.tsx'
import { DateInput, Select, TextInput } from '../kit/controls/input.tsx'
import { Facts } from '../kit/header.tsx'
import { Dialog } from '../kit/overlays/dialog.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { nameConstant, Pill, type Tone } from '../kit/status.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Time } from '../kit/time.tsx'
import { useMembers } from '../people/data.ts'
import { useTeam } from '../shell/role.tsx'
import { type AuditEntry, useAudit, useAuditActions } from './data.ts'

const FILTERS = {
  ...{ action: '', userId: '', resourceId: '', outcome: '', from: '', to: '' },
  ...{ page: '', tab: 'entries' },
}

const OUTCOMES: Record<string, { label: string; tone: Tone }> = {
  SUCCESS: { label: 'Done', tone: 'good' },
  FAILURE: { label: 'Failed', tone: 'bad' },
  DENIED: { label: 'Denied', tone: 'warn' },
}

/** The entries: search in the address, newest first. */
export function AuditEntries() {
  const { teamId } = useTeam()
  const [query, setQuery, linkTo] = useQueryState(FILTERS)
  const { page, tab: _, ...filter } = query
  const found = useAudit(teamId, filter, readPage(page))
  const members = useMembers(teamId)
  const actions = useAuditActions()
  const [open, setOpen] = useState<AuditEntry | null>(null)
  const filtered = Object.values(filter).some(Boolean)
  return (
    <>
      <div className="filters">
        <Field label="Action">
          <Select
            value={query.action}
            onChange={(action) => setQuery({ action })}
            empty="Any action"
            choices={(actions.data ?? []).map((value) => ({ value, label: nameConstant(value) }))}
          />
        </Field>
        <Field label="Outcome">
          <Select
            value={query.outcome}
            onChange={(outcome) => setQuery({ outcome })}
            empty="Any outcome"
            choices={Object.entries(OUTCOMES).map(([value, { label }]) => ({ value, label }))}
          />
        </Field>
        <Field label="Who">
          <Select
            value={query.userId}
            onChange={(userId) => setQuery({ userId })}
            empty="Anybody"
            choices={(members.data ?? []).map(({ userId, firstName, lastName }) => ({
              value: userId,
              label: `${firstName} ${lastName}`,
            }))}
          />
        </Field>
        <Field label="From">
          <DateInput value={query.from} onChange={(from) => setQuery({ from })} />
        </Field>
        <Field label="Before">
          <DateInput value={query.to} onChange={(to) => setQuery({ to })} />
        </Field>
        <Field label="Resource's id">
          <Late value={query.resourceId} onChange={(resourceId) => setQuery({ resourceId })} />
        </Field>
        {filtered && <Button onClick={() => go('/audit')}>Clear</Button>}
      </div>
      <Loaded query={found}>
        {(list) =>
          list.totalElements > 0 ? (
            <>
              <EntryTable rows={list.content} onOpen={setOpen} onFilter={setQuery} />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          ) : (
            <Empty title="Nothing found" text="No entry fits these filters." />
          )
        }
      </Loaded>
      {open && <EntryDialog entry={open} onClose={() => setOpen(null)} />}
    </>
  )
}

/** A text that counts on Enter or when the field is left: half an id finds nothing. */
function Late({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value)
  const [known, setKnown] = useState(value)
  if (known !== value) {
    setKnown(value)
    setText(value)
  }
  const apply = () => text.trim() !== value && onChange(text.trim())
  return (
    <TextInput
      value={text}
      maxLength={36}
      placeholder="Any"
      spellCheck={false}
      onChange={setText}
      onBlur={apply}
      onKeyDown={(event) => event.key === 'Enter' && apply()}
    />
  )
}

type TableProps = {
  rows: readonly AuditEntry[]
  onOpen: (entry: AuditEntry) => void
  onFilter: (filter: { resourceId: string }) => void
}

function EntryTable({ rows, onOpen, onFilter }: TableProps) {
  return (
    <Table
      label="Audit entries"
      rows={rows}
      keyOf={({ id }) => id}
      onOpen={onOpen}
      columns={[
        { heading: 'No.', number: true, cell: ({ seq }) => seq },
        { heading: 'When', cell: ({ createdAt }) => <Time at={createdAt} /> },
        { heading: 'Who', cell: (entry) => <Who entry={entry} /> },
        {
          heading: 'Action',
          cell: ({ action }) => (
            <span className="name" title={action}>
              {nameConstant(action)}
            </span>
          ),
        },
        {
          heading: 'Resource',
          cell: ({ resourceType, resourceId }) => (
            <>
              {nameConstant(resourceType)}{' '}
              {resourceId && (
                <Button
                  small
                  look="plain"
                  icon="filter"
                  aria-label={`Only entries about ${resourceId}`}
                  onClick={() => onFilter({ resourceId })}
                />
              )}
            </>
          ),
        },
        { heading: 'Outcome', cell: ({ outcome }) => <Outcome outcome={outcome} /> },
        {
          heading: 'Details',
          cell: (entry) => (
            <Button small aria-label={`Details of entry ${entry.seq}`} onClick={() => onOpen(entry)}>
              Details
            </Button>
          ),
        },
      ]}
    />
  )
}

function Outcome({ outcome }: Pick<AuditEntry, 'outcome'>) {
  const { label, tone } = OUTCOMES[outcome] ?? { label: outcome, tone: 'warn' }
  return <Pill tone={tone}>{label}</Pill>
}

const KINDS: Record<AuditEntry['actor']['kind'], string> = {
  USER: '',
  SDK_TOKEN: 'SDK token',
  SYSTEM: 'The service',
  ANONYMOUS: 'Nobody signed in',
}

function Who({ entry: { userName, actor, ip } }: { entry: AuditEntry }) {
  const about = [userName ? KINDS[actor.kind] : '', actor.role ? nameConstant(actor.role) : '', ip ?? '']
  return (
    <>
      <div className="said">{userName ?? KINDS[actor.kind]}</div>
      <div className="quiet">{about.filter(Boolean).join(' · ')}</div>
    </>
  )
}

function EntryDialog({ entry, onClose }: { entry: AuditEntry; onClose: () => void }) {
  const { seq, action, createdAt, outcome, resourceType, resourceId, ip, userAgent, requestId } = entry
  return (
    <Dialog open onClose={onClose} title={`Entry ${seq}: ${nameConstant(action)}`} wide>
      <div className="stack">
        <Facts
          facts={[
            ['When', <Time key="when" at={createdAt} />],
            ['Who', <Who key="who" entry={entry} />],
            ['Action', <code key="action">{action}</code>],
            ['Outcome', <Outcome key="outcome" outcome={outcome} />],
            ['Resource', nameConstant(resourceType)],
            ['Its id', resourceId && <Copied key="id" text={resourceId} what="the resource's id" />],
            ['Address', ip],
            ['Browser or program', userAgent && <span className="said">{userAgent}</span>],
            ['Request', requestId && <Copied key="request" text={requestId} what="the request's id" />],
            ['Hash', <Copied key="hash" text={entry.hash} what="the hash" />],
            ['Hash before', <Copied key="before" text={entry.prevHash} what="the hash before" />],
          ]}
        />
        <JsonTree value={entry.details} label="Details" />
        <div className="actions">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}

function Copied({ text, what }: { text: string; what: string }) {
  return (
    <>
      <code>{text}</code>
      <CopyButton text={text} label={`Copy ${what}`} />
    </>
  )
}
