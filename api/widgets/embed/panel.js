import { make, makeIcon } from './dom.js'
import { showMarkdown } from './markdown.js'
import { statusOf } from './talk.js'

const CROSS = 'M6 6l12 12M18 6L6 18'
const ARROW = 'M4 12l16-8-6 16-3-7z'

/** The service takes no longer ones. */
const LONGEST = 4000

/**
 * The elements of the panel, what it talks through, and how far it is.
 *
 * @typedef {ReturnType<typeof drawPanel> & {
 *   look: import('./talk.js').Look
 *   talk: import('./talk.js').Talk
 *   isBusy: boolean
 *   isRead: boolean
 *   isClosed: boolean
 * }} Chat
 */

/**
 * The conversation: what was said, and where to say more.
 *
 * @param {{ look: import('./talk.js').Look, talk: import('./talk.js').Talk }} what
 */
export function createPanel({ look, talk }) {
  const chat = { ...drawPanel(look.theme.title), look, talk, isBusy: false, isRead: false, isClosed: false }
  const { panel, close } = chat
  listenToForms(chat)
  showForms(chat)
  return {
    panel,
    close,
    /** Shows what was said, and waits for more. */
    open() {
      panel.hidden = false
      void recall(chat)
      focusForm(chat)
    },
    focus: () => focusForm(chat),
  }
}

/** @param {string} title */
function drawPanel(title) {
  const log = make('div', {
    className: 'log',
    role: 'log',
    'aria-live': 'off',
    'aria-label': 'Messages',
    tabIndex: 0,
  })
  // Tells whole replies: each of their words by itself would be too much to listen to.
  const status = make('div', { className: 'quiet', role: 'status' })
  const close = make(
    'button',
    { className: 'close', type: 'button', 'aria-label': 'Close chat' },
    makeIcon(CROSS),
  )
  const heading = make('h2', { id: 'title' }, title)
  const asking = drawAsking()
  const writing = drawWriting()
  const panel = make(
    'section',
    { className: 'panel', role: 'dialog', 'aria-labelledby': 'title', hidden: true },
    ...[make('header', {}, heading, close), log, status, asking.asking, writing.writing],
  )
  return { panel, close, log, status, ...asking, ...writing }
}

/** The form for a message. */
function drawWriting() {
  const input = make('textarea', {
    id: 'message',
    rows: 1,
    maxLength: LONGEST,
    placeholder: 'Write a message',
  })
  const send = make('button', { className: 'send', type: 'submit', 'aria-label': 'Send' }, makeIcon(ARROW))
  const label = make('label', { for: 'message', className: 'quiet' }, 'Your message')
  return { writing: make('form', {}, label, input, send), input, send }
}

/** The form for the visitor's address. */
function drawAsking() {
  const email = make('input', {
    id: 'email',
    type: 'email',
    required: true,
    maxLength: 320,
    autocomplete: 'email',
  })
  const start = make('button', { className: 'send', type: 'submit' }, 'Start chat')
  const label = make('label', { for: 'email' }, 'Your e-mail address')
  return { asking: make('form', { className: 'email' }, label, email, start), email, start }
}

/** @param {Chat} chat */
function listenToForms(chat) {
  const { writing, input, asking, email, start, status, talk } = chat
  writing.addEventListener('submit', async (event) => {
    event.preventDefault()
    const content = input.value.trim()
    if (content === '' || chat.isBusy) return
    // The session may have ended meanwhile: then the address is asked for once more, and the text stays.
    showForms(chat)
    if (writing.hidden) return focusForm(chat)
    input.value = ''
    await say(chat, content)
  })
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    writing.requestSubmit()
  })
  asking.addEventListener('submit', async (event) => {
    event.preventDefault()
    start.disabled = true
    try {
      await talk.begin(email.value)
      showForms(chat)
      input.focus()
    } catch (error) {
      addSaid(chat, explain(error), 'failed')
      status.textContent = explain(error)
    }
    start.disabled = false
  })
}

/** @param {Chat} chat */
function showForms({ look, talk, asking, writing, isClosed }) {
  const asks = look.collectEmail && !talk.isKnown()
  asking.hidden = !asks || isClosed
  writing.hidden = asks || isClosed
}

/** @param {Chat} chat */
function focusForm({ asking, input, email }) {
  const first = asking.hidden ? input : email
  first.focus()
}

/** @param {Chat} chat @param {Node | string} content @param {string} [kind] */
function addSaid(chat, content, kind = '') {
  const said = make('div', { className: `said ${kind}` }, content)
  chat.log.append(said)
  followEnd(chat, true)
  return said
}

/** Follows the end of the log, unless the visitor reads further up. @param {Chat} chat @param {boolean} [always] */
function followEnd({ log }, always = false) {
  if (always || log.scrollHeight - log.scrollTop - log.clientHeight < 80) log.scrollTop = log.scrollHeight
}

/** Reads what was said before, once. @param {Chat} chat */
async function recall(chat) {
  const { look, talk, log } = chat
  if (chat.isRead) return
  chat.isRead = true
  log.replaceChildren()
  if (look.theme.welcomeText) addSaid(chat, showMarkdown(look.theme.welcomeText))
  if (!talk.isKnown()) return
  try {
    const all = await talk.readHistory()
    for (const { role, content } of all)
      if (content !== '')
        addSaid(chat, role === 'user' ? content : showMarkdown(content), role === 'user' ? 'mine' : '')
    const open = talk.readOpen()
    if (open === undefined) return
    if (all.at(-1)?.status === 'STREAMING') return await hear(chat, open)
    // It has been replied to meanwhile, or the service never had it.
    if (all.slice(-2).some(({ content }) => content === open)) talk.closeOpen()
    else giveBack(chat, open)
  } catch (error) {
    if (statusOf(error) === 401) talk.forget()
    else {
      addSaid(chat, explain(error), 'failed')
      chat.isClosed = statusOf(error) === 404
      chat.isRead = chat.isClosed
    }
  }
  showForms(chat)
}

/** What could not be sent is not lost. @param {Chat} chat @param {string} content */
function giveBack({ input }, content) {
  input.value = [content, input.value].filter((text) => text !== '').join('\n')
}

/** @param {Chat} chat @param {string} content */
async function say(chat, content) {
  const mine = addSaid(chat, content, 'mine')
  if (await hear(chat, content)) return
  mine.remove()
  giveBack(chat, content)
}

/**
 * Shows the reply to a message as it comes. False if the message was not taken.
 *
 * @param {Chat} chat
 * @param {string} content
 */
async function hear(chat, content) {
  const { talk, send, status } = chat
  chat.isBusy = true
  send.disabled = true
  let isTaken = true
  const dots = make('span', { className: 'waiting', 'aria-hidden': 'true' }, make('i'), make('i'), make('i'))
  const reply = addSaid(chat, dots)
  status.textContent = 'Writing a reply'
  let text = ''
  let failure = ''
  await talk
    .say(content, (event) => {
      if (event.type === 'chunk') text += event.content
      else if (event.type === 'reset') text = ''
      else if (event.type === 'error') failure = event.message
      if (text === '') reply.replaceChildren(dots)
      else reply.replaceChildren(showMarkdown(text))
      followEnd(chat)
    })
    .catch((error) => {
      failure = explain(error)
      isTaken = false
      if (statusOf(error) === 401) talk.forget()
      chat.isClosed = statusOf(error) === 404
    })
  if (failure !== '') {
    if (text === '') reply.remove()
    addSaid(chat, failure, 'failed')
  }
  status.textContent = failure || text
  chat.isBusy = false
  send.disabled = false
  showForms(chat)
  return isTaken
}

/** @param {unknown} error */
function explain(error) {
  const status = statusOf(error)
  if (status === 429) {
    const { wait = 0 } = /** @type {{ wait?: number }} */ (error)
    return wait > 3600
      ? 'There were too many messages today. Please come back tomorrow.'
      : 'That was a lot at once. Please try again in a minute.'
  }
  if (status === 409) return 'The reply before is still being written. Please wait for it.'
  if (status === 401) return 'This chat has ended. Please write again to begin a new one.'
  if (status === 400) return 'That could not be read. Please check it.'
  if (status === 404) return 'This chat is closed at the moment.'
  return 'There is no connection at the moment. Please try again.'
}
