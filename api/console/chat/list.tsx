import { useState } from 'react'
import { Link } from 'wouter'
import { createChat, useChats } from '../data/chats.ts'
import { go, readPage, useQueryState } from '../kit/address.ts'
import { Button } from '../kit/button.tsx'
import { FormDialog } from '../kit/dialog.tsx'
import { Field } from '../kit/field.tsx'
import { PageHeader } from '../kit/header.tsx'
import { TextInput } from '../kit/input.tsx'
import { Pager } from '../kit/pager.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Table } from '../kit/table.tsx'
import { Age } from '../kit/time.tsx'
import { useTeam } from '../shell/role.tsx'
import { WorkflowChoice } from '../workflows/choice.tsx'

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
              text="Talk with an active workflow whose CHAT_TRIGGER leads to an agent."
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
      <Field label="Workflow" help="It must be active, and its CHAT_TRIGGER must lead to an agent.">
        <WorkflowChoice value={workflowId} onChange={setWorkflowId} />
      </Field>
    </FormDialog>
  )
}
