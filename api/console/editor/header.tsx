import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { addressOf } from '../data/client.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { TextArea } from '../kit/controls/input.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Menu } from '../kit/overlays/menu.tsx'
import { useRole } from '../shell/role.tsx'
import { type EditorStore, isDirty, useEditor } from './graph/store.ts'
import { ActiveTurn, Standing } from './standing.tsx'

type HeaderProps = {
  store: EditorStore
  id: string | undefined
  readOnly: boolean
  busy: boolean
  view: string
  onView: (view: string) => void
  onSave: () => void
  /** With `switchOn`, the workflow is to become active by it. */
  onPublish: (switchOn: boolean) => void
  onDiscard: () => void
  onExecute: () => void
  /** Undefined where nothing can be called from outside. */
  onListen: (() => void) | undefined
  onHelp: () => void
  onSettings: () => void
}

/** The workflow's name, and what can be done with it as a whole. */
export function Header(props: HeaderProps) {
  const { store, id, readOnly, busy, view, onView, onSave, onPublish, onExecute, onListen } = props
  const name = useEditor(store, ({ draft }) => draft.name)
  const dirty = useEditor(store, isDirty)
  const live = useEditor(store, (state) => state.live)
  const drafted = live !== null && live.draftVersion !== null
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
      <Standing store={store} id={id} readOnly={readOnly} />
      <div className="editor-do">
        {id && <ActiveTurn store={store} id={id} readOnly={readOnly} onAsk={() => onPublish(true)} />}
        <fieldset className="segmented" aria-label="View">
          {['canvas', 'json'].map((one) => (
            <button key={one} type="button" aria-pressed={view === one} onClick={() => onView(one)}>
              {one === 'json' ? 'JSON' : 'Canvas'}
            </button>
          ))}
        </fieldset>
        <More {...props} name={name} drafted={drafted} onDescribe={() => setDescribing(true)} />
        {onListen && may('BUILDER') && (
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
          <Button
            {...(id ? {} : { look: 'primary' })}
            busy={busy}
            disabled={!dirty}
            onClick={onSave}
            title={id ? 'Save as a draft (Ctrl S)' : 'Save (Ctrl S)'}
          >
            Save
          </Button>
        )}
        {!readOnly && id && (
          <Button
            look="primary"
            disabled={busy || (!dirty && !drafted && live?.active === true)}
            onClick={() => onPublish(false)}
            title="Show what changes, and make it live"
          >
            Publish
          </Button>
        )}
      </div>

      {describing && <Description store={store} onClose={() => setDescribing(false)} />}
    </header>
  )
}

type MoreProps = Pick<HeaderProps, 'id' | 'readOnly' | 'onDiscard' | 'onHelp' | 'onSettings'> & {
  name: string
  drafted: boolean
  onDescribe: () => void
}

/** The acts that are seldom needed. */
function More({ id, readOnly, name, drafted, onDescribe, onDiscard, onHelp, onSettings }: MoreProps) {
  return (
    <Menu
      trigger={<Button look="plain" icon="more" aria-label="More" />}
      items={[
        ...(readOnly ? [] : [{ label: 'Description', icon: 'edit' as const, onClick: onDescribe }]),
        { label: 'Settings', icon: 'settings', onClick: onSettings },
        ...(id
          ? [
              { label: 'Versions', icon: 'schedules' as const, href: `/workflows/${id}/versions` },
              ...(drafted
                ? [
                    {
                      label: 'Export the draft',
                      icon: 'download' as const,
                      onClick: () => download(id, name, '?version=draft'),
                    },
                  ]
                : []),
              {
                label: drafted ? 'Export what is published' : 'Export',
                icon: 'download' as const,
                onClick: () => download(id, name),
              },
            ]
          : []),
        ...(drafted && !readOnly
          ? [
              {
                label: 'Discard the draft',
                icon: 'trash' as const,
                danger: true,
                onClick: onDiscard,
              },
            ]
          : []),
        { label: 'Keys of the canvas', icon: 'help', onClick: onHelp },
      ]}
    />
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

function download(id: string, name: string, query = ''): void {
  const link = document.createElement('a')
  link.href = addressOf(`/api/workflows/${id}/export`) + query
  link.download = `${name.replace(/[\\/:*?"<>|\p{Cc}]/gu, '_').slice(0, 100)}.json`
  link.click()
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
      <Field
        label="What the workflow does"
        help="It counts as soon as it is saved: it is no part of a draft."
      >
        <TextArea value={text} maxLength={5_000} rows={5} onChange={setText} />
      </Field>
    </FormDialog>
  )
}
