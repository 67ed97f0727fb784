import { useState } from 'react'
import { problemsOf } from '../data/refusal.ts'
import { Field } from '../kit/controls/field.tsx'
import { TextArea, TextInput } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Loaded } from '../kit/states.tsx'
import { nameConstant } from '../kit/status.tsx'
import { Managed } from '../kit/tables/managed.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import { BUILT_IN, type Dimension, updateDimensions, useOwnDimensions } from './data.ts'

const RUBRIC = '5: …\n3: …\n1: …'

/** What the team has judged beside what every team can have judged. */
export function DimensionsView() {
  const { teamId } = useTeam()
  const mayChange = useRole()('ADMIN')
  const confirm = useConfirm()
  const found = useOwnDimensions(teamId)
  const [edited, setEdited] = useState<Dimension | 'new' | null>(null)
  const all = found.data ?? []
  const remove = ({ name }: Dimension) =>
    confirm({
      title: `Delete ${nameConstant(name)}?`,
      text: 'Runs are not judged in it any more, and settings that name it leave it without a score. Scores that there are stay.',
      label: 'Delete the dimension',
      danger: true,
      work: () =>
        updateDimensions(
          teamId,
          all.filter((one) => one.name !== name),
        ),
    })
  return (
    <div className="stack">
      <p className="quiet">
        Every team has {BUILT_IN.map(nameConstant).join(', ')}. Those of the team are its own, with what each
        score from 1 to 5 means.
      </p>
      <Loaded query={found} rows={3}>
        {(dimensions) => (
          <Managed
            label="Dimensions"
            rows={dimensions.map((one) => ({ ...one, id: one.name }))}
            mayChange={mayChange}
            empty={{
              title: 'No dimensions of its own',
              text: 'Add one to have tone, completeness or the style of your house judged too.',
            }}
            add={{ label: 'New dimension', onClick: () => setEdited('new') }}
            columns={[
              {
                heading: 'Dimension',
                cell: ({ name, rubric }) => (
                  <>
                    <span className="name">{nameConstant(name)}</span>
                    <div className="quiet said">{rubric}</div>
                  </>
                ),
              },
            ]}
            menu={(one) => [
              { label: 'Edit', icon: 'edit', onClick: () => setEdited(one) },
              { label: 'Delete', icon: 'trash', danger: true, onClick: () => remove(one) },
            ]}
          />
        )}
      </Loaded>
      {edited && (
        <DimensionDialog
          teamId={teamId}
          all={all}
          known={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
        />
      )}
    </div>
  )
}

type DialogProps = { teamId: string; all: Dimension[]; known: Dimension | null; onClose: () => void }

function DimensionDialog({ teamId, all, known, onClose }: DialogProps) {
  const [name, setName] = useState(known?.name ?? '')
  const [rubric, setRubric] = useState(known?.rubric ?? '')
  const at = known ? all.findIndex((one) => one.name === known.name) : all.length
  const save = async () => {
    await updateDimensions(teamId, all.toSpliced(at, 1, { name, rubric }))
    notify('Saved')
  }
  // The API names the place in the list; that the list has a name twice is about the name too.
  const problemOf = (error: unknown, key: string) =>
    problemsOf(error).find(
      ({ path }) => path === `dimensions[${at}].${key}` || (path === 'dimensions' && key === 'name'),
    )?.message
  return (
    <FormDialog
      open
      onClose={onClose}
      title={known ? `Edit ${nameConstant(known.name)}` : 'New dimension'}
      label="Save the dimension"
      onSubmit={save}
      fields={[`dimensions[${at}].name`, `dimensions[${at}].rubric`, 'dimensions']}
    >
      {(error) => (
        <>
          <Field
            label="Name"
            required
            help={
              known
                ? 'It stays: settings and scores name it.'
                : 'Small letters, digits, _ and -, such as tone.'
            }
            error={problemOf(error, 'name')}
          >
            <TextInput
              value={name}
              disabled={known !== null}
              onChange={setName}
              required
              maxLength={64}
              className="code"
            />
          </Field>
          <Field
            label="Rubric"
            required
            help="What is judged, and what each score from 1 to 5 means. The judge reads it."
            error={problemOf(error, 'rubric')}
          >
            <TextArea
              value={rubric}
              onChange={setRubric}
              required
              rows={6}
              maxLength={4_000}
              placeholder={RUBRIC}
            />
          </Field>
        </>
      )}
    </FormDialog>
  )
}
