import { useState } from 'react'
import { problemAt, Refusal } from '../data/refusal.ts'
import { readPage, useQueryState } from '../kit/address.ts'
import { Code } from '../kit/code/code.tsx'
import { Button } from '../kit/controls/button.tsx'
import { CopyButton } from '../kit/controls/copy.tsx'
import { Field } from '../kit/controls/field.tsx'
import { TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { createVariable, deleteVariable, updateVariable, useVariables, type Variable } from './data.ts'

/** The open dialog: a variable to change, or 'new'. */
type Open = Variable | 'new' | null

/** The team's variables, for all of its workflows. */
export function VariablesPage() {
  const may = useRole()
  const { teamId } = useTeam()
  const [query, , linkTo] = useQueryState({ page: '' })
  const found = useVariables(teamId, readPage(query.page))
  const [open, setOpen] = useState<Open>(null)
  const add = may('BUILDER') && (
    <Button look="primary" icon="plus" onClick={() => setOpen('new')}>
      New variable
    </Button>
  )
  return (
    <>
      <PageHeader
        title="Variables"
        lead="Expressions of all workflows read them as $vars. They are no secrets: every member sees them."
      >
        {add}
      </PageHeader>
      <Loaded query={found}>
        {(list) =>
          list.totalElements === 0 ? (
            <Empty
              title="No variables"
              text="Keep here what several workflows share, such as the address of a service."
            >
              {add}
            </Empty>
          ) : (
            <>
              <VariableTable rows={list.content} onEdit={setOpen} />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          )
        }
      </Loaded>
      {open && <VariableDialog variable={open === 'new' ? null : open} onClose={() => setOpen(null)} />}
    </>
  )
}

function VariableTable({ rows, onEdit }: { rows: readonly Variable[]; onEdit: (one: Variable) => void }) {
  const may = useRole()
  const confirm = useConfirm()
  const remove = ({ id, key }: Variable) =>
    confirm({
      title: 'Delete this variable?',
      text: (
        <>
          Expressions that read <code>$vars.{key}</code> find nothing from now on.
        </>
      ),
      label: 'Delete',
      danger: true,
      work: async () => {
        await deleteVariable(id)
        notify('Variable deleted')
      },
    })
  return (
    <Table
      label="Variables"
      rows={rows}
      keyOf={({ id }) => id}
      {...(may('BUILDER') ? { onOpen: onEdit } : {})}
      columns={[
        {
          heading: 'Key',
          cell: ({ key, description }) => (
            <>
              <code className="name">{key}</code>
              <CopyButton text={`{{ $vars.${key} }}`} label={`Copy the expression for ${key}`} />
              {description && <div className="quiet said">{description}</div>}
            </>
          ),
        },
        {
          heading: 'Value',
          cell: ({ value }) => {
            const text = JSON.stringify(value)
            return (
              <code className="line" title={text}>
                {text}
              </code>
            )
          },
        },
        { heading: 'Changed', cell: ({ updatedAt }) => <Age at={updatedAt} /> },
        may('BUILDER') && {
          heading: 'Actions',
          cell: (one) => (
            <div className="row">
              <Button small aria-label={`Edit ${one.key}`} onClick={() => onEdit(one)}>
                Edit
              </Button>
              <Button small aria-label={`Delete ${one.key}`} onClick={() => remove(one)}>
                Delete
              </Button>
            </div>
          ),
        },
      ]}
    />
  )
}

function VariableDialog({ variable, onClose }: { variable: Variable | null; onClose: () => void }) {
  const { teamId } = useTeam()
  const [key, setKey] = useState(variable?.key ?? '')
  const [text, setText] = useState(variable ? JSON.stringify(variable.value, null, 2) : '""')
  const [about, setAbout] = useState(variable?.description ?? '')
  const send = async () => {
    const fields = { key, value: readJson(text), description: about || null }
    if (variable) await updateVariable(variable.id, fields)
    else await createVariable(teamId, fields)
    notify(variable ? 'Variable saved' : 'Variable created')
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title={variable ? `Edit ${variable.key}` : 'New variable'}
      label={variable ? 'Save' : 'Create'}
      wide
      onSubmit={send}
      fields={['key', 'value', 'description']}
    >
      {(error) => (
        <div className="stack">
          <Field label="Key" required help={`Read as $vars.${key || 'key'}`} error={problemAt(error, 'key')}>
            <TextInput value={key} maxLength={100} spellCheck={false} onChange={setKey} />
          </Field>
          <Field
            label="Value"
            help={'JSON: a text stands in quotes, such as "eu"'}
            error={problemAt(error, 'value')}
          >
            <Code language="json" value={text} onChange={setText} lines={12} />
          </Field>
          <Field label="Description" error={problemAt(error, 'description')}>
            <TextInput value={about} maxLength={1_000} onChange={setAbout} />
          </Field>
        </div>
      )}
    </FormDialog>
  )
}

/** The typed value, refused as the API would refuse it. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const message = 'must be JSON; put quotes around a text'
    throw new Refusal(400, message, [{ path: 'value', message }])
  }
}
