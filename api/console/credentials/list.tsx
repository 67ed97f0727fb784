import { useMemo, useState } from 'react'
import { useQueryState } from '../kit/address.ts'
import { Button, LinkButton } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select, TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { Menu } from '../kit/overlays/menu.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Pill } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { useRowWork } from '../kit/work.ts'
import { useCommands } from '../shell/commands.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import {
  type CredentialItem,
  connectCredential,
  testCredential,
  useCredentials,
  useCredentialTypes,
} from './data.ts'
import { CredentialDialog, EditCredential } from './dialog.tsx'
import { CredentialUsage, DeleteCredential } from './usage.tsx'

type Work = { kind: 'edit' | 'usage' | 'delete'; of: CredentialItem } | { kind: 'create' } | null

/** What the team's nodes sign in elsewhere with. */
export function CredentialsPage() {
  const may = useRole()
  return may('BUILDER') ? (
    <Credentials />
  ) : (
    <>
      <PageHeader title="Credentials" />
      <Empty title="Not for your role" text="BUILDERs and ADMINs of a team see its credentials." />
    </>
  )
}

function Credentials() {
  const { teamId } = useTeam()
  const [query, setQuery] = useQueryState({ type: '', search: '' })
  const found = useCredentials(teamId)
  const types = useCredentialTypes()
  const [work, setWork] = useState<Work>(null)
  const close = () => setWork(null)
  const create = useMemo(
    () => [
      {
        id: 'new credential',
        label: 'New credential',
        icon: 'plus' as const,
        run: () => setWork({ kind: 'create' }),
      },
    ],
    [],
  )
  useCommands(create)
  const wanted = query.search.trim().toLowerCase()
  const fits = (one: CredentialItem) =>
    (query.type === '' || one.type === query.type) && one.name.toLowerCase().includes(wanted)
  return (
    <>
      <PageHeader
        title="Credentials"
        lead="What nodes sign in elsewhere with. What is secret is stored sealed, and never shown again."
      >
        <Button look="primary" icon="plus" onClick={() => setWork({ kind: 'create' })}>
          New credential
        </Button>
      </PageHeader>
      <div className="filters">
        <Field label="Search">
          <TextInput
            type="search"
            placeholder="Name"
            value={query.search}
            maxLength={200}
            onChange={(search) => setQuery({ search }, { replace: true })}
          />
        </Field>
        <Field label="Type">
          <Select
            value={query.type}
            onChange={(type) => setQuery({ type })}
            empty="Every type"
            choices={(types.data ?? []).map(({ type }) => ({ value: type, label: type }))}
          />
        </Field>
        {(query.type || query.search) && <LinkButton href="/credentials">Clear</LinkButton>}
      </div>
      <Loaded query={found}>
        {(list) => {
          const rows = list.filter(fits)
          if (rows.length > 0) return <CredentialTable rows={rows} onWork={setWork} />
          return list.length > 0 ? (
            <Empty title="No credentials" text="None fits these filters." />
          ) : (
            <Empty title="No credentials" text="Nodes that sign in elsewhere need one.">
              <Button look="primary" icon="plus" onClick={() => setWork({ kind: 'create' })}>
                Create the first one
              </Button>
            </Empty>
          )
        }}
      </Loaded>
      {work?.kind === 'create' && (
        <CredentialDialog onClose={close} {...(query.type ? { types: [query.type] } : {})} />
      )}
      {work?.kind === 'edit' && <EditCredential {...work.of} onClose={close} />}
      {work?.kind === 'usage' && <CredentialUsage {...work.of} onClose={close} />}
      {work?.kind === 'delete' && <DeleteCredential {...work.of} onClose={close} />}
    </>
  )
}

type TableProps = { rows: readonly CredentialItem[]; onWork: (work: Work) => void }

function CredentialTable({ rows, onWork }: TableProps) {
  return (
    <Table
      label="Credentials"
      rows={rows}
      keyOf={({ id }) => id}
      onOpen={(of) => onWork({ kind: 'edit', of })}
      columns={[
        { heading: 'Name', cell: ({ name }) => <span className="name">{name}</span> },
        { heading: 'Type', cell: ({ type }) => <code>{type}</code> },
        { heading: 'Changed', cell: ({ updatedAt }) => <Age at={updatedAt} /> },
        { heading: 'Last test', cell: (one) => <LastTest credential={one} /> },
        { heading: 'Actions', cell: (one) => <Actions credential={one} onWork={onWork} /> },
      ]}
    />
  )
}

function LastTest({ credential: { testStatus, lastTestedAt } }: { credential: CredentialItem }) {
  if (!testStatus) return <span className="quiet">Never</span>
  const good = testStatus === 'SUCCESS'
  return (
    <>
      <Pill tone={good ? 'good' : 'bad'}>{good ? 'Works' : 'Failed'}</Pill>{' '}
      <span className="quiet">
        <Age at={lastTestedAt} />
      </span>
    </>
  )
}

type ActionsProps = { credential: CredentialItem; onWork: (work: Work) => void }

function Actions({ credential, onWork }: ActionsProps) {
  const { id, name, type, teamId } = credential
  const { busy, run, test } = useRowWork(name)
  // The browser goes to the authorization server, which sends it back.
  const connect = async () => location.assign(await connectCredential(id))
  return (
    <div className="row">
      <Button
        small
        busy={busy}
        aria-label={`Test ${name}`}
        onClick={() => test(() => testCredential(teamId, id))}
      >
        Test
      </Button>
      {type === 'OAUTH2' && (
        <Button small icon="link" aria-label={`Connect ${name}`} onClick={() => run(connect)}>
          Connect
        </Button>
      )}
      <Button small aria-label={`Edit ${name}`} onClick={() => onWork({ kind: 'edit', of: credential })}>
        Edit
      </Button>
      <Menu
        trigger={<Button small look="plain" icon="more" aria-label={`More for ${name}`} />}
        items={[
          { label: 'Usage', icon: 'workflows', onClick: () => onWork({ kind: 'usage', of: credential }) },
          'line',
          {
            label: 'Delete',
            icon: 'trash',
            danger: true,
            onClick: () => onWork({ kind: 'delete', of: credential }),
          },
        ]}
      />
    </div>
  )
}
