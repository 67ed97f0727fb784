import { make, makeIcon } from './dom.js'
import { showMarkdown } from './markdown.js'
import { statusOf } from './talk.js'

const CROSS = 'M6 6l12 12M18 6L6 18'
const ARROW = 'M4 12l16-8-6 16-3-7z'

/** The service takes no longer ones. */
const LONGEST = 4000

/**
 * The conversation: what was said, and where to say more.
 *
 * @param {{ look: import('./talk.js').Look, talk: import('./talk.js').Talk }} what
 */
export function createPanel({ look, talk }) {
  const { theme, collectEmail } = look
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
  const input = make('textarea', {
    id: 'message',
    rows: 1,
    maxLength: LONGEST,
    placeholder: 'Write a message',
  })
  const send = make('button', { className: 'send', type: 'submit', 'aria-label': 'Send' }, makeIcon(ARROW))
  const writing = make(
    'form',
    {},
    make('label', { for: 'message', className: 'quiet' }, 'Your message'),
    input,
    send,
  )
  const email = make('input', {
    id: 'email',
    type: 'email',
    required: true,
    maxLength: 320,
    autocomplete: 'email',
  })
  const start = make('button', { className: 'send', type: 'submit' }, 'Start chat')
  const asking = make(
    'form',
    { className: 'email' },
    make('label', { for: 'email' }, 'Your e-mail address'),
    email,
    start,
  )
  const heading = make('h2', { id: 'title' }, theme.title)
  const panel = make(
    'section',
    { className: 'panel', role: 'dialog', 'aria-labelledby': 'title', hidden: true },
    ...[make('header', {}, heading, close), log, status, asking, writing],
  )
  let isBusy = false
  let isRead = false
  let isClosed = false

  function showForms() {
    const asks = collectEmail && !talk.isKnown()
    asking.hidden = !asks || isClosed
    writing.hidden = asks || isClosed
  }

  /** @param {Node | string} content @param {string} [kind] */
  function add(content, kind = '') {
    const said = make('div', { className: `said ${kind}` }, content)
    log.append(said)
    scroll(true)
    return said
  }

  /** Follows the end of the log, unless the visitor reads further up. @param {boolean} [always] */
  function scroll(always = false) {
    if (always || log.scrollHeight - log.scrollTop - log.clientHeight < 80) log.scrollTop = log.scrollHeight
  }

  /** Reads what was said before, once. */
  async function recall() {
    if (isRead) return
    isRead = true
    log.replaceChildren()
    if (theme.welcomeText) add(showMarkdown(theme.welcomeText))
    if (!talk.isKnown()) return
    try {
      const all = await talk.readHistory()
      for (const { role, content } of all)
        if (content !== '')
          add(role === 'user' ? content : showMarkdown(content), role === 'user' ? 'mine' : '')
      const open = talk.readOpen()
      if (open === undefined) return
      if (all.at(-1)?.status === 'STREAMING') return await hear(open)
      // It has been replied to meanwhile, or the service never had it.
      if (all.slice(-2).some(({ content }) => content === open)) talk.closeOpen()
      else giveBack(open)
    } catch (error) {
      if (statusOf(error) === 401) talk.forget()
      else {
        add(explain(error), 'failed')
        isClosed = statusOf(error) === 404
        isRead = isClosed
      }
    }
    showForms()
  }

  /** A message that could not be sent is not lost. @param {string} content */
  function giveBack(content) {
    input.value = [content, input.value].filter((text) => text !== '').join('\n')
  }

  /** @param {string} content */
  async function say(content) {
    const mine = add(content, 'mine')
    if (await hear(content)) return
    mine.remove()
    giveBack(content)
  }

  /** Shows the reply to a message as it comes. False if the message was not taken. @param {string} content */
  async function hear(content) {
    isBusy = true
    send.disabled = true
    let isTaken = true
    const dots = make(
      'span',
      { className: 'waiting', 'aria-hidden': 'true' },
      make('i'),
      make('i'),
      make('i'),
    )
    const reply = add(dots)
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
        scroll()
      })
      .catch((error) => {
        failure = explain(error)
        isTaken = false
        if (statusOf(error) === 401) talk.forget()
        isClosed = statusOf(error) === 404
      })
    if (failure !== '') {
      if (text === '') reply.remove()
      add(failure, 'failed')
    }
    status.textContent = failure || text
    isBusy = false
    send.disabled = false
    showForms()
    return isTaken
  }

  writing.addEventListener('submit', async (event) => {
    event.preventDefault()
    const content = input.value.trim()
    if (content === '' || isBusy) return
    // The session may have ended meanwhile: then the address is asked for once more, and the text stays.
    showForms()
    if (writing.hidden) return focus()
    input.value = ''
    await say(content)
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
      showForms()
      input.focus()
    } catch (error) {
      add(explain(error), 'failed')
      status.textContent = explain(error)
    }
    start.disabled = false
  })
  showForms()
  return {
    panel,
    close,
    /** Shows what was said, and waits for more. */
    open() {
      panel.hidden = false
      void recall()
      focus()
    },
    focus,
  }

  function focus() {
    const first = asking.hidden ? input : email
    first.focus()
  }
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
