import { useState } from 'react'
import { isRefused } from '../../data/refusal.ts'
import { Button } from '../../kit/controls/button.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { Checkbox, TextArea } from '../../kit/controls/input.tsx'
import { notify } from '../../kit/notices.tsx'
import { Dialog, FormDialog } from '../../kit/overlays/dialog.tsx'
import { Loaded, Refused } from '../../kit/states.tsx'
import { useWork } from '../../kit/work.ts'
import type { Workflow } from '../data.ts'
import { hasMovedOn, type Published, publishVersion, useStanding } from './data.ts'
import { Difference } from './diff.tsx'
import '../workflows.css'

type PublishProps = {
  id: string
  name: string
  /** Which version; undefined for the draft, or for what is published where there is none. */
  version?: number
  /** The draft that the page shows: another one is not published unseen. */
  known?: number | null
  /** Whether the workflow is to be switched on: the box begins so. */
  switchOn?: boolean
  onClose: () => void
  /** The dialog stays until it has resolved. */
  onPublished: (now: Published) => unknown
  /** Gets what is wrong with the graph; without it the dialog lists that. */
  onProblems?: (error: unknown) => void
}

/** Asks before a version is published: with what changes, a note, and whether the workflow is switched on. */
export function PublishDialog(props: PublishProps) {
  const found = useStanding(props.id)
  if (!found.data) {
    return (
      <Dialog open onClose={props.onClose} title={`Publish ${props.name}`}>
        <Loaded query={found}>{() => null}</Loaded>
      </Dialog>
    )
  }
  const refresh = async () => {
    await found.refetch()
  }
  return <Asked {...props} now={found.data.body} tag={found.data.tag} refresh={refresh} />
}

type AskedProps = PublishProps & { now: Workflow; tag: string | null; refresh: () => Promise<void> }

function Asked({ now, tag, refresh, known, version, switchOn = false, ...props }: AskedProps) {
  const [note, setNote] = useState('')
  const [box, setBox] = useState(switchOn)
  const { id, name, onClose } = props
  const other = useWork()
  const { active, publishedVersion: published, draftVersion } = now
  const target = version ?? draftVersion ?? published
  const same = target === published
  const isDraft = target === draftVersion
  const why = tellUnpublishable(now, { known, target })
  if (why) return <Told title={`Publish ${name}`} text={why} onClose={onClose} />
  const on = !active && (box || same)
  const publish = async (wanted = target, active = on) => {
    const json = {
      ...(wanted === draftVersion ? {} : { version: wanted }),
      ...(active ? { active: true } : {}),
      note: note.trim() || null,
    }
    try {
      const done = await publishVersion(id, json, tag)
      notify(tellPublished(done.body))
      await props.onPublished(done)
    } catch (error) {
      if (isRefused(error, 400) && props.onProblems) return props.onProblems(error)
      if (!isRefused(error, 412) && !isRefused(error, 409)) throw error
      await refresh()
      throw new Error(
        'The workflow was changed elsewhere meanwhile. What you see now is what there is: look again, then publish.',
      )
    }
  }
  const publishOther = async () => {
    await publish(published, true)
    onClose()
  }
  return (
    <FormDialog
      open
      wide
      onClose={onClose}
      title={same ? `Switch on ${name}` : `Publish ${isDraft ? 'the draft of ' : ''}${name}`}
      label={same ? 'Switch on' : on ? 'Publish and switch on' : 'Publish'}
      onSubmit={() => publish()}
    >
      <p>{tellEffect(now, target)}</p>
      {isDraft && hasMovedOn(now) && (
        <p className="hint">
          Version {published} was published after this draft began. Publishing the draft replaces it: what it
          has and the draft has not is marked as removed below.
        </p>
      )}
      {!same && (
        <>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
          <section className="publish-difference" aria-label="What changes" tabIndex={0}>
            <Difference id={id} from={published} to={target} />
          </section>
          <Field label="Note" help="What is new: it is kept with the version, and in the audit log.">
            <TextArea value={note} maxLength={2_000} rows={2} onChange={setNote} />
          </Field>
        </>
      )}
      {!active && !same && (
        <Checkbox checked={box} onChange={setBox}>
          Switch the workflow on: its triggers start executions
        </Checkbox>
      )}
      {switchOn && isDraft && (
        <p className="row">
          <span className="quiet">Or leave the draft as it is:</span>
          <Button small busy={other.busy} onClick={() => other.run(publishOther)}>
            Switch on version {published}
          </Button>
        </p>
      )}
      <Refused error={other.error} />
    </FormDialog>
  )
}

function Told({ title, text, onClose }: { title: string; text: string; onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title={title}>
      <p>{text}</p>
      <div className="actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  )
}

type Aim = { known: number | null | undefined; target: number }

/** Why nothing can be published from here; empty if it can. */
function tellUnpublishable(
  { active, publishedVersion, draftVersion }: Workflow,
  { known, target }: Aim,
): string {
  if (known !== undefined && known !== draftVersion)
    return draftVersion === null
      ? 'There is no draft any more: it was published or discarded elsewhere.'
      : `The draft was saved elsewhere meanwhile: it is version ${draftVersion} now. Load it first, and look at it.`
  if (target !== publishedVersion || !active) return ''
  return `There is nothing to publish: version ${publishedVersion} is live, and there is no draft.`
}

function tellEffect({ active, publishedVersion, draftVersion }: Workflow, target: number): string {
  if (target === publishedVersion)
    return `Version ${target} is published, but the workflow is inactive. Switched on, its triggers start executions of this version.`
  const from = `${active ? 'Live' : 'Published'} is version ${publishedVersion}.`
  if (target !== draftVersion || target < publishedVersion)
    return `${from} What is published is a new version with the graph of version ${target}. Executions that have begun keep theirs.`
  return `${from} Version ${target} takes its place. Executions that have begun keep theirs.`
}

function tellPublished({ publishedVersion, active }: Workflow): string {
  return active
    ? `Version ${publishedVersion} is live`
    : `Version ${publishedVersion} is published; the workflow is inactive`
}
