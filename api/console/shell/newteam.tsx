import { type FormEvent, useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { Refused } from '../kit/states.tsx'
import { createTeam } from '../people/data.ts'

/** The page for a user who is in no team: everything belongs to one. */
export function NewTeam({ onMade }: { onMade: (teamId: string) => void }) {
  const [name, setName] = useState('')
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const send = async (event: FormEvent) => {
    event.preventDefault()
    if (busy) return
    setBusy(true)
    setError(null)
    try {
      const team = await createTeam(name)
      notify(`The team ${team.name} is yours`)
      onMade(team.id)
    } catch (refused) {
      setError(refused)
    } finally {
      setBusy(false)
    }
  }
  const wrong = problemAt(error, 'name')
  return (
    <>
      <PageHeader
        title="Create a team"
        lead="Workflows, executions and credentials belong to a team. Create one, or ask an ADMIN of a team to add you."
      />
      <form className="stack narrow" onSubmit={(event) => void send(event)}>
        <Field label="Name" required error={wrong}>
          <TextInput value={name} maxLength={200} onChange={setName} />
        </Field>
        {!wrong && <Refused error={error} />}
        <Button type="submit" look="primary" busy={busy}>
          Create team
        </Button>
      </form>
    </>
  )
}
