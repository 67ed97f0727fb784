import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { addressOf } from '../data/client.ts'
import { problemsOf } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Switch, TextArea } from '../kit/controls/input.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Menu } from '../kit/overlays/menu.tsx'
import { useRole } from '../shell/role.tsx'
import { saveWorkflow } from './data.ts'
import { readFaults } from './graph/faults.ts'
import { type EditorStore, isDirty, useEditor } from './graph/store.ts'

type HeaderProps = {
  store: EditorStore
  id: string | undefined
  active: boolean
  readOnly: boolean
  busy: boolean
  view: string
  onView: (view: string) => void
  onSave: () => void
  onExecute: () => void
  /** Undefined where nothing can be called from outside. */
  onListen: (() => void) | undefined
  onHelp: () => void
  onSettings: () => void
}

/** The workflow's name, and what can be done with it as a whole. */
export function Header({
  store,
  id,
  active,
  readOnly,
  busy,
  view,
  onView,
  onSave,
  onExecute,
  onListen,
  onHelp,
  onSettings,
}: HeaderProps) {
  const name = useEditor(store, ({ draft }) => draft.name)
  const dirty = useEditor(store, isDirty)
  const may = useRole()
  const [describing, setDescribing] = useState(false)
  useEffect(() => {
    document.title = `${name || 'Workflow'} · Perdure`
  }, [name])
  const rename = (next: string) => store.edit({ ...store.get().draft, name: next }, { key: 'name' })
  return (
    <header className="editor-head">
      <h1 className="hidden">{readOnly ? name : `Edit ${name}`}</h1>
      <Link
        href={id ? `/workflows/${id}` : '/workflows'}
        className="button plain square"
        aria-label="Back to the workflow"
      >
        <Back />
      </Link>
      {readOnly ? (
        <strong className="editor-title">{name}</strong>
      ) : (
        <input
          className="editor-name"
          aria-label="Name of the workflow"
          maxLength={200}
          value={name}
          onChange={(event) => rename(event.target.value)}
        />
      )}
      <span className="editor-state quiet" role="status">
        {readOnly ? 'Read-only' : dirty ? (id ? 'Unsaved changes' : 'Not saved yet') : 'Saved'}
      </span>
      <div className="editor-do">
        {id && <Active store={store} id={id} active={active} readOnly={readOnly} />}
        <fieldset className="segmented" aria-label="View">
          {['canvas', 'json'].map((one) => (
            <button key={one} type="button" aria-pressed={view === one} onClick={() => onView(one)}>
              {one === 'json' ? 'JSON' : 'Canvas'}
            </button>
          ))}
        </fieldset>
        <Menu
          trigger={<Button look="plain" icon="more" aria-label="More" />}
          items={[
            ...(readOnly
              ? []
              : [{ label: 'Description', icon: 'edit' as const, onClick: () => setDescribing(true) }]),
            { label: 'Settings', icon: 'settings', onClick: onSettings },
            ...(id
              ? [
                  { label: 'Versions', icon: 'schedules' as const, href: `/workflows/${id}/versions` },
                  { label: 'Export', icon: 'download' as const, onClick: () => download(id, name) },
                ]
              : []),
            { label: 'Keys of the canvas', icon: 'help', onClick: onHelp },
          ]}
        />
        {onListen && may('OPERATOR') && (
          <Button
            icon="link"
            onClick={onListen}
            title="Wait for a call from outside, and open what it starts"
          >
            Listen
          </Button>
        )}
        {may('OPERATOR') && (id || !readOnly) && (
          <Button icon="play" onClick={onExecute}>
            Execute
          </Button>
        )}
        {!readOnly && (
          <Button look="primary" busy={busy} disabled={!dirty} onClick={onSave} title="Save (Ctrl S)">
            Save
          </Button>
        )}
      </div>
      {describing && <Description store={store} onClose={() => setDescribing(false)} />}
    </header>
  )
}

function Back() {
  return (
    <svg
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      aria-hidden="true"
    >
      <path d="M10 3.500L5.500 8l4.500 4.500" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  )
}

function download(id: string, name: string): void {
  const link = document.createElement('a')
  link.href = addressOf(`/api/workflows/${id}/export`)
  link.download = `${name.replace(/[\\/:*?"<>|\p{Cc}]/gu, '_').slice(0, 100)}.json`
  link.click()
}

type ActiveProps = { store: EditorStore; id: string; active: boolean; readOnly: boolean }

/** Whether triggers start the workflow: at once, of the graph that is saved. */
function Active({ store, id, active, readOnly }: ActiveProps) {
  const [on, setOn] = useState(active)
  const turn = async (next: boolean) => {
    const { saved, tag } = store.get()
    setOn(next)
    try {
      const { body, tag: newer } = await saveWorkflow(id, { active: next }, tag)
      setOn(body.active)
      store.set({ tag: newer })
      notify(body.active ? 'Active: its triggers start executions' : 'Inactive')
    } catch (error) {
      setOn(!next)
      if (saved && problemsOf(error).length > 0) store.set({ faults: readFaults(problemsOf(error), saved) })
      notifyError(error)
    }
  }
  return (
    <span className="row editor-active">
      <Switch label="Active" checked={on} disabled={readOnly} onChange={(next) => void turn(next)} />
      <span aria-hidden="true">{on ? 'Active' : 'Inactive'}</span>
    </span>
  )
}

function Description({ store, onClose }: { store: EditorStore; onClose: () => void }) {
  const [text, setText] = useState(store.get().draft.description)
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Description"
      label="Apply"
      onSubmit={async () => store.edit({ ...store.get().draft, description: text })}
    >
      <Field label="What the workflow does" help="It is saved with the workflow.">
        <TextArea value={text} maxLength={5_000} rows={5} onChange={setText} />
      </Field>
    </FormDialog>
  )
}
