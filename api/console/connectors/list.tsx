import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { TextArea, TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { nameType } from '../kit/names.ts'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Loaded } from '../kit/states.tsx'
import { Pill } from '../kit/status.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { type Connector, createConnector, deleteConnector, useConnectors } from './data.ts'

/** The services that the team's workflows can call: those that every team has, and its own. */
export function ConnectorsPage() {
  const mayBuild = useRole()('BUILDER')
  const { teamId } = useTeam()
  const found = useConnectors(teamId)
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <PageHeader
        title="Connectors"
        lead="Services whose actions workflows and agents carry out with the node CONNECTOR, never twice where that must not be."
      >
        {mayBuild && (
          <Button look="primary" icon="plus" onClick={() => setOpen(true)}>
            New connector
          </Button>
        )}
      </PageHeader>
      <Loaded query={found}>{(list) => <ConnectorList rows={list} />}</Loaded>
      {isOpen && <ConnectorDialog teamId={teamId} onClose={() => setOpen(false)} />}
    </>
  )
}

function ConnectorList({ rows }: { rows: readonly Connector[] }) {
  const may = useRole()
  const confirm = useConfirm()
  const remove = ({ id, title }: Connector) =>
    confirm({
      title: `Delete the connector ${title}?`,
      text: 'It goes with all of its versions. One that published workflows use is kept, and they are named.',
      label: 'Delete',
      danger: true,
      work: async () => {
        await deleteConnector(id)
        notify('Connector deleted')
      },
    })
  return (
    <Table
      label="Connectors"
      rows={rows}
      keyOf={({ id }) => id}
      columns={[
        {
          heading: 'Service',
          cell: ({ title, summary }) => (
            <>
              <span className="name">{title}</span>
              {summary && <div className="quiet said">{summary}</div>}
            </>
          ),
        },
        { heading: 'Name', cell: ({ name }) => <code>{name}</code> },
        {
          heading: 'Signing in',
          cell: ({ signIn }) =>
            signIn.length === 0 ? <span className="quiet">Not needed</span> : signIn.map(nameType).join(', '),
        },
        {
          heading: 'Version',
          cell: ({ kind, version, updatedAt }) =>
            kind === 'BUILT_IN' ? (
              <Pill>Every team</Pill>
            ) : (
              <>
                {version} {updatedAt && <Age at={updatedAt} />}
              </>
            ),
        },
        may('BUILDER') && {
          heading: 'Actions',
          cell: (one) =>
            one.kind === 'BUILT_IN' ? null : (
              <Button small aria-label={`Delete ${one.title}`} onClick={() => remove(one)}>
                Delete
              </Button>
            ),
        },
      ]}
    />
  )
}

function ConnectorDialog({ teamId, onClose }: { teamId: string; onClose: () => void }) {
  const [name, setName] = useState('')
  const [openapi, setOpenapi] = useState('')
  const [server, setServer] = useState('')
  const send = async () => {
    const more = server === '' ? {} : { server }
    const { problems } = await createConnector(teamId, { name, openapi, ...more })
    const lost = problems.length
    notify(lost === 0 ? 'Connector created' : `Connector created; ${lost} of its parts cannot be used`)
  }
  return (
    <FormDialog
      open
      wide
      onClose={onClose}
      title="New connector"
      label="Create"
      onSubmit={send}
      fields={['name', 'openapi', 'server']}
    >
      {(error) => (
        <div className="stack">
          <Field
            label="Name"
            required
            help="What nodes name it by: small letters, digits and -."
            error={problemAt(error, 'name')}
          >
            <TextInput value={name} onChange={setName} spellCheck={false} required />
          </Field>
          <Field
            label="OpenAPI document"
            required
            help="The document itself, in JSON or YAML, or its address. 2.0 (Swagger), 3.0 or 3.1."
            error={problemAt(error, 'openapi')}
          >
            <TextArea code rows={10} value={openapi} onChange={setOpenapi} required />
          </Field>
          <Field
            label="Server"
            help="Where the service is, if not as the document says."
            error={problemAt(error, 'server')}
          >
            <TextInput value={server} onChange={setServer} spellCheck={false} placeholder="https://" />
          </Field>
        </div>
      )}
    </FormDialog>
  )
}
