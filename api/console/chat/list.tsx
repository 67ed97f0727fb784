import { useState } from 'react'
import { Link } from 'wouter'
import { go, readPage, useQueryState } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Icon } from '../kit/controls/icon.tsx'
import { TextInput } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { notifyError } from '../kit/notices.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Age } from '../kit/time.tsx'
import { useTeam } from '../shell/role.tsx'
import { WorkflowChoice } from '../workflows/choice.tsx'
import { useWorkflows } from '../workflows/data.ts'
import { createChat, useChats } from './data.ts'
import './chat.css'

/** The user's chats with agents. */
export function ChatsPage() {
  const { teamId } = useTeam()
  const [query, setQuery, linkTo] = useQueryState({ search: '', page: '' })
  const [opening, setOpening] = useState(false)
  const found = useChats(teamId, query.search, readPage(query.page))
  const open = (
    <Button look="primary" icon="plus" onClick={() => setOpening(true)}>
      New chat
    </Button>
  )
  return (
    <>
      <PageHeader title="Chat">{open}</PageHeader>
      <Agents teamId={teamId} />
      <div className="filters">
        <Field label="Search">
          <TextInput
            type="search"
            value={query.search}
            onChange={(search) => setQuery({ search }, { replace: true })}
          />
        </Field>
      </div>
      <Loaded query={found}>
        {(list) =>
          list.totalElements === 0 ? (
            <Empty
              title={query.search ? 'Nothing found' : 'No chats yet'}
              text={
                query.search
                  ? 'The title of no chat of yours has this in it.'
                  : 'What you and an agent say to each other is kept here. Only you and ADMINs of the team see it.'
              }
            />
          ) : (
            <>
              <Table
                label="Chats"
                rows={list.content}
                keyOf={({ id }) => id}
                onOpen={({ id }) => go(`/chat/${id}`)}
                columns={[
                  {
                    heading: 'Chat',
                    cell: ({ id, title }) => (
                      <Link className="name" href={`/chat/${id}`}>
                        {title || 'New chat'}
                      </Link>
                    ),
                  },
                  { heading: 'Messages', number: true, cell: ({ messageCount }) => messageCount },
                  {
                    heading: 'Last message',
                    cell: ({ lastMessageAt, createdAt }) => <Age at={lastMessageAt ?? createdAt} />,
                  },
                ]}
              />
              <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            </>
          )
        }
      </Loaded>
      {opening && <NewChat teamId={teamId} onClose={() => setOpening(false)} />}
    </>
  )
}

const AGENTS = { agent: 'true', active: 'true' } as const
const FEW = 6

/** The agents that the team can chat with; the others are found by name in the dialog. */
function Agents({ teamId }: { teamId: string }) {
  const { data } = useWorkflows(teamId, { ...AGENTS, size: FEW })
  const [busy, setBusy] = useState('')
  if (!data) return null
  const begin = async (id: string) => {
    setBusy(id)
    try {
      go(`/chat/${(await createChat(teamId, id)).id}`)
    } catch (error) {
      notifyError(error)
    } finally {
      setBusy('')
    }
  }
  if (data.totalElements === 0)
    return (
      <p className="quiet">
        No active workflow of the team can be chatted with: its chat trigger has to lead to an LLM or an AI
        agent. The template <Link href="/start">Chat with an agent</Link> makes one.
      </p>
    )
  return (
    <section className="agents" aria-label="Agents">
      {data.content.map(({ id, name, description }) => (
        <button
          key={id}
          type="button"
          aria-busy={busy === id || undefined}
          disabled={busy !== ''}
          onClick={() => void begin(id)}
        >
          <Icon name={busy === id ? 'spinner' : 'chat'} spin={busy === id} size={16} />
          <strong className="line" title={name}>
            {name}
          </strong>
          <span className="quiet line" title={description ?? undefined}>
            {description || 'Begin a chat'}
          </span>
        </button>
      ))}
    </section>
  )
}

function NewChat({ teamId, onClose }: { teamId: string; onClose: () => void }) {
  const [workflowId, setWorkflowId] = useState('')
  return (
    <FormDialog
      open
      onClose={onClose}
      title="New chat"
      label="Open the chat"
      onSubmit={async () => {
        const { id } = await createChat(teamId, workflowId)
        go(`/chat/${id}`)
      }}
    >
      <Field label="Agent" help="The active workflows whose chat trigger leads to an LLM or an AI agent.">
        <WorkflowChoice
          value={workflowId}
          onChange={setWorkflowId}
          placeholder="Choose an agent"
          only={AGENTS}
        />
      </Field>
    </FormDialog>
  )
}
